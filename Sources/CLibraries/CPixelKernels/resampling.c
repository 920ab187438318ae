#include "resampling.h"

#include <string.h>

#include "dispatch.h"

// Eight numbers, which the compiler splits where the processor has shorter registers.
typedef float numbers8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t integers8 __attribute__((vector_size(32)));
typedef uint8_t bytes8 __attribute__((vector_size(8), aligned(1), may_alias));

// The numbers of a row that are worked on together, so that all rows' parts and sums stay in the nearest cache.
enum { part_length = 256 };

INLINE size_t padded(size_t count) {
    return (count + cpixels_row_padding - 1) / cpixels_row_padding * cpixels_row_padding;
}

// Rows to numbers

INLINE void load_plain(const uint8_t *stored, float *numbers, size_t count) {
    for (size_t index = 0; index < count; index += 8) {
        bytes8 bytes = *(const bytes8 *)(stored + index);
        *(numbers8 *)(numbers + index) = __builtin_convertvector(bytes, numbers8);
    }
}

INLINE void multiply_by_alpha(float *numbers, size_t count) {
    const numbers8 ones = {1, 1, 1, 1, 1, 1, 1, 1};
    for (size_t index = 0; index < count; index += 8) {
        numbers8 pixels = *(numbers8 *)(numbers + index);
        numbers8 alphas = __builtin_shufflevector(pixels, pixels, 3, 3, 3, 3, 7, 7, 7, 7);
        *(numbers8 *)(numbers + index) = pixels * __builtin_shufflevector(alphas, ones, 0, 1, 2, 8, 4, 5, 6, 8);
    }
}

INLINE void load(const uint8_t *stored, float *numbers, size_t count, const struct cpixels_samples *samples) {
    const float *light = samples->light;
    if (!light) {
        load_plain(stored, numbers, count);
    } else if (samples->channels == 4) {
        for (size_t index = 0; index < count; index += 4) {
            numbers[index] = light[stored[index]];
            numbers[index + 1] = light[stored[index + 1]];
            numbers[index + 2] = light[stored[index + 2]];
            numbers[index + 3] = stored[index + 3];
        }
    } else {
        for (size_t index = 0; index < count; index++) numbers[index] = light[stored[index]];
    }
    if (samples->channels == 4) multiply_by_alpha(numbers, count);
}

// Rows by weights

INLINE void add_four(float *sum, const float *const *rows, const float *weights, size_t count) {
    const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    float p = weights[0], q = weights[1], r = weights[2], s = weights[3];
    for (size_t index = 0; index < count; index += 8) {
        numbers8 first = *(const numbers8 *)(a + index) * p + *(const numbers8 *)(b + index) * q;
        numbers8 second = *(const numbers8 *)(c + index) * r + *(const numbers8 *)(d + index) * s;
        *(numbers8 *)(sum + index) += first + second;
    }
}

INLINE void add_one(float *sum, const float *row, float weight, size_t count) {
    for (size_t index = 0; index < count; index += 8) {
        *(numbers8 *)(sum + index) += *(const numbers8 *)(row + index) * weight;
    }
}

INLINE void add(float *sum, const float *const *rows, const float *weights, size_t row_count, size_t count) {
    size_t row = 0;
    for (; row + 4 <= row_count; row += 4) add_four(sum, rows + row, weights + row, count);
    for (; row < row_count; row++) add_one(sum, rows[row], weights[row], count);
}

KERNEL void cpixels_add_rows(
    const uint8_t *const *rows, size_t row_count, const struct cpixels_samples *samples, float *const *sums,
    const float *weights, const bool *is_new, size_t sum_count, size_t width) {
    _Alignas(32) float parts[cpixels_most_rows][part_length];
    const float *numbers[cpixels_most_rows];
    size_t count = padded(width * samples->channels);
    for (size_t row = 0; row < row_count; row++) numbers[row] = parts[row];
    for (size_t start = 0; start < count; start += part_length) {
        size_t length = count - start < part_length ? count - start : part_length;
        for (size_t row = 0; row < row_count; row++) load(rows[row] + start, parts[row], length, samples);
        for (size_t index = 0; index < sum_count; index++) {
            const float *shares = weights + index * cpixels_most_rows;
            size_t first = 0, end = row_count;
            while (first < end && shares[first] == 0) first++;
            while (end > first && shares[end - 1] == 0) end--;
            if (is_new[index]) memset(sums[index] + start, 0, length * sizeof(float));
            add(sums[index] + start, numbers + first, shares + first, end - first, length);
        }
    }
}

KERNEL void cpixels_mix_rows(
    const float *const *rows, const float *weights, size_t row_count, float *sum, size_t count) {
    const float *parts[cpixels_most_rows];
    count = padded(count);
    for (size_t start = 0; start < count; start += part_length) {
        size_t length = count - start < part_length ? count - start : part_length;
        for (size_t row = 0; row < row_count; row++) parts[row] = rows[row] + start;
        memset(sum + start, 0, length * sizeof(float));
        add(sum + start, parts, weights, row_count, length);
    }
}

// Columns by weights

size_t cpixels_pack_rows(size_t channels) {
    return channels == 4 ? 4 : 8;
}

INLINE void pack_row(const float *row, size_t channels, size_t place, float *pack, size_t width) {
    size_t step = channels * (channels == 4 ? 4 : 8);
    float *pixel = pack + place * channels;
    for (size_t column = 0; column < width; column++, pixel += step, row += channels) {
        memcpy(pixel, row, channels * sizeof(float));
    }
}

KERNEL void cpixels_pack_row(const float *row, size_t channels, size_t place, float *pack, size_t width) {
    switch (channels) {
    case 1: pack_row(row, 1, place, pack, width); break;
    case 3: pack_row(row, 3, place, pack, width); break;
    default: pack_row(row, 4, place, pack, width); break;
    }
}

// The vectors of a pack's pixel: 1, 3 or 2.
INLINE void filter_columns(
    const float *pack, size_t channels, size_t vectors, const int32_t *firsts, const int32_t *counts,
    const float *weights, float *const *rows, size_t row_count, size_t width) {
    for (size_t column = 0; column < width; column++) {
        const float *source = pack + (size_t)firsts[column] * vectors * 8;
        numbers8 sums[3] = {{0}, {0}, {0}};
        for (int32_t index = 0; index < counts[column]; index++, source += vectors * 8) {
            float weight = weights[index];
            for (size_t vector = 0; vector < vectors; vector++) {
                sums[vector] += *(const numbers8 *)(source + vector * 8) * weight;
            }
        }
        weights += counts[column];
        _Alignas(32) float pixel[24];
        for (size_t vector = 0; vector < vectors; vector++) *(numbers8 *)(pixel + vector * 8) = sums[vector];
        for (size_t row = 0; row < row_count; row++) {
            memcpy(rows[row] + column * channels, pixel + row * channels, channels * sizeof(float));
        }
    }
}

KERNEL void cpixels_filter_columns(
    const float *pack, size_t channels, const int32_t *firsts, const int32_t *counts, const float *weights,
    float *const *rows, size_t row_count, size_t width) {
    switch (channels) {
    case 1: filter_columns(pack, 1, 1, firsts, counts, weights, rows, row_count, width); break;
    case 3: filter_columns(pack, 3, 3, firsts, counts, weights, rows, row_count, width); break;
    default: filter_columns(pack, 4, 2, firsts, counts, weights, rows, row_count, width); break;
    }
}

// Numbers to rows

// Vectors are handed on by address: as values they would differ between processors.
INLINE void round_into(bytes8 *bytes, const numbers8 *numbers) {
    const numbers8 none = {0}, most = none + 255;
    numbers8 limited = __builtin_elementwise_min(__builtin_elementwise_max(*numbers, none), most);
    *bytes = __builtin_convertvector(__builtin_convertvector(limited + 0.5f, integers8), bytes8);
}

// Divides colours by their alpha; without alpha there is no colour to give back.
INLINE void straighten(numbers8 *pixels) {
    const numbers8 none = {0}, ones = none + 1;
    numbers8 alphas = __builtin_shufflevector(*pixels, *pixels, 3, 3, 3, 3, 7, 7, 7, 7);
    numbers8 divisors = __builtin_shufflevector(alphas, ones, 0, 1, 2, 8, 4, 5, 6, 8);
    *pixels = (numbers8)((integers8)(*pixels / divisors) & (integers8)(alphas >= none + 0.5f));
}

INLINE uint8_t stored_light(float light, const struct cpixels_samples *samples) {
    float value = light > 0 ? light : 0;
    value = value < 255 ? value : 255;
    uint8_t sample = samples->nearest[(size_t)(value * (4096.0f / 255))];
    return sample + (value >= samples->limits[sample + 1]);
}

KERNEL void cpixels_store_row(const float *row, const struct cpixels_samples *samples, uint8_t *stored, size_t width) {
    size_t channels = samples->channels, count = width * channels;
    for (size_t index = 0; index < count; index += 8) {
        numbers8 numbers = *(const numbers8 *)(row + index);
        if (channels == 4) straighten(&numbers);
        bytes8 bytes;
        round_into(&bytes, &numbers);
        if (samples->light) {
            for (size_t lane = 0; lane < 8; lane++) {
                if (channels != 4 || lane % 4 != 3) bytes[lane] = stored_light(numbers[lane], samples);
            }
        }
        size_t rest = count - index;
        if (rest >= 8) {
            *(bytes8 *)(stored + index) = bytes;
        } else {
            memcpy(stored + index, &bytes, rest);
        }
    }
}
