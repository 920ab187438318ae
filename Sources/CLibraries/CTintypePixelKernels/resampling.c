// SPDX-License-Identifier: Apache-2.0

#include "resampling.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "dispatch.h"

// Eight numbers. The compiler splits them if the processor has shorter registers.
typedef float numbers8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t integers8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint16_t halves16 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int16_t halves8 __attribute__((vector_size(16)));
typedef uint8_t bytes8 __attribute__((vector_size(8), aligned(1), may_alias));
typedef uint8_t bytes16 __attribute__((vector_size(16)));

// The numbers of a row that are processed together, so that all rows' parts and sums stay in the first-level cache.
enum { part_length = 256 };

INLINE size_t padded(size_t count) {
    return (count + cpixels_row_padding - 1) / cpixels_row_padding * cpixels_row_padding;
}

// Numbers to samples

// Pass vectors by address, because passing them by value differs between processors.
INLINE void round_into(bytes8 *bytes, const numbers8 *numbers) {
    const numbers8 none = {0}, most = none + 255;
    numbers8 limited = __builtin_elementwise_min(__builtin_elementwise_max(*numbers, none), most);
    *bytes = __builtin_convertvector(__builtin_convertvector(limited + 0.5f, integers8), bytes8);
}

// Divides colours by their alpha. If alpha rounds to 0, the colour becomes 0.
INLINE void straighten(numbers8 *pixels) {
    const numbers8 none = {0}, full = none + 255;
    numbers8 scaled = *pixels * (1 / 255.0f);
    numbers8 alphas = __builtin_shufflevector(scaled, scaled, 3, 3, 3, 3, 7, 7, 7, 7);
    numbers8 divisors = __builtin_shufflevector(alphas, full, 0, 1, 2, 8, 4, 5, 6, 8);
    *pixels = (numbers8)((integers8)(*pixels / divisors) & (integers8)(alphas >= none + 0.5f));
}

// Rows to numbers

// Multiplies alpha by 255 too, so that all samples of a pixel have the scale of 65,025.
INLINE void multiply_by_alpha(float *numbers, size_t count) {
    const numbers8 full = {255, 255, 255, 255, 255, 255, 255, 255};
    for (size_t index = 0; index < count; index += 8) {
        numbers8 pixels = *(numbers8 *)(numbers + index);
        numbers8 alphas = __builtin_shufflevector(pixels, pixels, 3, 3, 3, 3, 7, 7, 7, 7);
        *(numbers8 *)(numbers + index) = pixels * __builtin_shufflevector(alphas, full, 0, 1, 2, 8, 4, 5, 6, 8);
    }
}

INLINE void load_numbers(const uint8_t *stored, float *numbers, size_t count, const struct cpixels_samples *samples) {
    const float *light = samples->light;
    if (!light) {
        for (size_t index = 0; index < count; index += 8) {
            bytes8 bytes = *(const bytes8 *)(stored + index);
            *(numbers8 *)(numbers + index) = __builtin_convertvector(bytes, numbers8);
        }
        if (samples->channels == 4) multiply_by_alpha(numbers, count);
    } else if (samples->channels == 4) {
        for (size_t index = 0; index < count; index += 4) {
            numbers[index] = light[stored[index]];
            numbers[index + 1] = light[stored[index + 1]];
            numbers[index + 2] = light[stored[index + 2]];
            numbers[index + 3] = stored[index + 3];
        }
        multiply_by_alpha(numbers, count);
    } else {
        for (size_t index = 0; index < count; index++) numbers[index] = light[stored[index]];
    }
}

// Interleaves two rows. With alpha, multiplies by alpha and subtracts half of the range, so that unsigned values fit
// into signed ones.
INLINE void load_pair(const uint8_t *first, const uint8_t *second, uint16_t *pair, size_t count, size_t channels) {
    const integers8 full = {0x00ff00ff, 0x00ff00ff, 0x00ff00ff, 0x00ff00ff,
                            0x00ff00ff, 0x00ff00ff, 0x00ff00ff, 0x00ff00ff};
    for (size_t index = 0; index < count; index += 8) {
        bytes8 a = *(const bytes8 *)(first + index), b = *(const bytes8 *)(second + index);
        bytes16 both = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
        halves16 samples = __builtin_convertvector(both, halves16);
        if (channels == 4) {
            integers8 pixels = (integers8)samples;
            integers8 alphas = __builtin_shufflevector(pixels, pixels, 3, 3, 3, 3, 7, 7, 7, 7);
            alphas = __builtin_shufflevector(alphas, full, 0, 1, 2, 8, 4, 5, 6, 8);
            samples = (samples * (halves16)alphas) ^ 0x8000;
        }
        *(halves16 *)(pair + 2 * index) = samples;
    }
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

KERNEL void cpixels_add_numbers(
    const uint8_t *const *rows, size_t row_count, const struct cpixels_samples *samples, float *const *sums,
    const float *weights, const bool *is_new, size_t sum_count, size_t width) {
    _Alignas(32) float parts[cpixels_most_rows][part_length];
    const float *numbers[cpixels_most_rows];
    size_t count = padded(width * samples->channels);
    for (size_t row = 0; row < row_count; row++) numbers[row] = parts[row];
    for (size_t start = 0; start < count; start += part_length) {
        size_t length = count - start < part_length ? count - start : part_length;
        for (size_t row = 0; row < row_count; row++) load_numbers(rows[row] + start, parts[row], length, samples);
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

size_t cpixels_places(size_t channels) {
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

// `vectors` is the number of vectors in a pixel of a pack: 1, 3 or 2.
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

// Integers

// Returns the shift that makes a sum of samples fit into 16 bits, even if the filter overshoots. A level becomes 64.
INLINE int whole_shift(int unit_bits, size_t channels) {
    return channels == 4 ? unit_bits + 2 : unit_bits - 6;
}

// Copies sums to their place in a pack, in pairs of columns.
INLINE void pack_sums(const int32_t *sums, size_t channels, size_t place, int shift, int16_t *pack, size_t width) {
    size_t step = 2 * channels * (channels == 4 ? 4 : 8);
    const int32_t half = 1 << (shift - 1);
    int16_t *pixels = pack + 2 * place * channels;
    for (size_t column = 0; column < width; column += 2, pixels += step, sums += 2 * channels) {
        integers8 both = (*(const integers8 *)sums + half) >> shift;
        both = channels == 4 ? __builtin_shufflevector(both, both, 0, 4, 1, 5, 2, 6, 3, 7)
            : channels == 3  ? __builtin_shufflevector(both, both, 0, 3, 1, 4, 2, 5, 6, 7)
                             : both;
        halves8 halves = __builtin_convertvector(both, halves8);
        memcpy(pixels, &halves, 2 * channels * sizeof(int16_t));
    }
}

// Converts the sums of one column of a pack to pixels.
INLINE void store_column(
    const int32_t *sums, size_t channels, float scale, uint8_t *const *rows, size_t row_count, size_t column) {
    size_t vectors = channels == 4 ? 2 : channels;
    uint8_t pixels[24];
    for (size_t vector = 0; vector < vectors; vector++) {
        numbers8 numbers = __builtin_convertvector(*(const integers8 *)(sums + 8 * vector), numbers8) * scale;
        if (channels == 4) {
            numbers += 32768;
            straighten(&numbers);
        }
        bytes8 bytes;
        round_into(&bytes, &numbers);
        *(bytes8 *)(pixels + 8 * vector) = bytes;
    }
    for (size_t row = 0; row < row_count; row++)
        memcpy(rows[row] + column * channels, pixels + row * channels, channels);
}

// One instruction multiplies two samples by their weights and adds the products. Compilers do not find it by
// themselves, so these two loops are written for each kind of processor.
#if defined(__x86_64__)

// Packs two weights into one integer.
INLINE int both_weights(const int16_t *weights) {
    return (int)((uint32_t)(uint16_t)weights[0] | (uint32_t)(uint16_t)weights[1] << 16);
}

#define PAIR_LOOP(suffix, attribute, vector, lanes, set, add, multiply)                                              \
    attribute static void add_pairs##suffix(                                                                         \
        int32_t *sum, uint16_t(*pairs)[2 * part_length], const int16_t *weights, size_t pair_count, size_t count) {  \
        for (; pair_count >= 4; pair_count -= 4, pairs += 4, weights += 8) {                                         \
            vector p = set(both_weights(weights)), q = set(both_weights(weights + 2));                               \
            vector r = set(both_weights(weights + 4)), s = set(both_weights(weights + 6));                           \
            for (size_t index = 0; index < count; index += lanes) {                                                  \
                vector *place = (vector *)(sum + index);                                                             \
                vector first = add(                                                                                  \
                    multiply(*(vector *)(pairs[0] + 2 * index), p), multiply(*(vector *)(pairs[1] + 2 * index), q)); \
                vector second = add(                                                                                 \
                    multiply(*(vector *)(pairs[2] + 2 * index), r), multiply(*(vector *)(pairs[3] + 2 * index), s)); \
                *place = add(*place, add(first, second));                                                            \
            }                                                                                                        \
        }                                                                                                            \
        for (; pair_count > 0; pair_count--, pairs++, weights += 2) {                                                \
            vector p = set(both_weights(weights));                                                                   \
            for (size_t index = 0; index < count; index += lanes) {                                                  \
                vector *place = (vector *)(sum + index);                                                             \
                *place = add(*place, multiply(*(vector *)(pairs[0] + 2 * index), p));                                \
            }                                                                                                        \
        }                                                                                                            \
    }

#define COLUMN_LOOP(suffix, attribute, vector, lanes, set, add, multiply)                                            \
    __attribute__((always_inline)) attribute static inline void store_columns_of##suffix(                            \
        const int16_t *pack, size_t channels, const int32_t *firsts, const int32_t *counts, const int16_t *weights,  \
        float scale, uint8_t *const *rows, size_t row_count, size_t width) {                                         \
        size_t step = channels * (channels == 4 ? 4 : 8);                                                            \
        for (size_t column = 0; column < width; column++) {                                                          \
            const int16_t *source = pack + (size_t)firsts[column] * 2 * step;                                        \
            vector sums[24 / lanes] = {set(0)};                                                                      \
            for (size_t place = 0; place < step / lanes; place++) sums[place] = set(0);                              \
            for (int32_t pair = 0; pair < counts[column]; pair++, source += 2 * step, weights += 2) {                \
                vector both = set(both_weights(weights));                                                            \
                for (size_t place = 0; place < step / lanes; place++) {                                              \
                    sums[place] = add(sums[place], multiply(*(const vector *)(source + 2 * lanes * place), both));   \
                }                                                                                                    \
            }                                                                                                        \
            _Alignas(32) int32_t pixels[24];                                                                         \
            for (size_t place = 0; place < step / lanes; place++) *(vector *)(pixels + lanes * place) = sums[place]; \
            store_column(pixels, channels, scale, rows, row_count, column);                                          \
        }                                                                                                            \
    }                                                                                                                \
                                                                                                                     \
    attribute static void store_columns##suffix(                                                                     \
        const int16_t *pack, size_t channels, const int32_t *firsts, const int32_t *counts, const int16_t *weights,  \
        float scale, uint8_t *const *rows, size_t row_count, size_t width) {                                         \
        switch (channels) {                                                                                          \
        case 1: store_columns_of##suffix(pack, 1, firsts, counts, weights, scale, rows, row_count, width); break;    \
        case 3: store_columns_of##suffix(pack, 3, firsts, counts, weights, scale, rows, row_count, width); break;    \
        default: store_columns_of##suffix(pack, 4, firsts, counts, weights, scale, rows, row_count, width); break;   \
        }                                                                                                            \
    }

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512bw")))

PAIR_LOOP(_sse2, , __m128i, 4, _mm_set1_epi32, _mm_add_epi32, _mm_madd_epi16)
PAIR_LOOP(_avx2, AVX2, __m256i, 8, _mm256_set1_epi32, _mm256_add_epi32, _mm256_madd_epi16)
PAIR_LOOP(_avx512, AVX512, __m512i, 16, _mm512_set1_epi32, _mm512_add_epi32, _mm512_madd_epi16)
COLUMN_LOOP(_sse2, , __m128i, 4, _mm_set1_epi32, _mm_add_epi32, _mm_madd_epi16)
COLUMN_LOOP(_avx2, AVX2, __m256i, 8, _mm256_set1_epi32, _mm256_add_epi32, _mm256_madd_epi16)

#define ADD_PAIRS(...)                           \
    if (__builtin_cpu_supports("avx512bw")) {    \
        add_pairs_avx512(__VA_ARGS__);           \
    } else if (__builtin_cpu_supports("avx2")) { \
        add_pairs_avx2(__VA_ARGS__);             \
    } else {                                     \
        add_pairs_sse2(__VA_ARGS__);             \
    }
#define STORE_COLUMNS(...)                \
    if (__builtin_cpu_supports("avx2")) { \
        store_columns_avx2(__VA_ARGS__);  \
    } else {                              \
        store_columns_sse2(__VA_ARGS__);  \
    }

#else

static void add_pairs_plain(
    int32_t *sum, uint16_t (*pairs)[2 * part_length], const int16_t *weights, size_t pair_count, size_t count) {
    for (size_t pair = 0; pair < pair_count; pair++, weights += 2) {
        const int16_t *samples = (const int16_t *)pairs[pair];
        for (size_t index = 0; index < count; index++) {
            sum[index] += samples[2 * index] * weights[0] + samples[2 * index + 1] * weights[1];
        }
    }
}

static void store_columns_plain(
    const int16_t *pack, size_t channels, const int32_t *firsts, const int32_t *counts, const int16_t *weights,
    float scale, uint8_t *const *rows, size_t row_count, size_t width) {
    size_t step = channels * (channels == 4 ? 4 : 8);
    for (size_t column = 0; column < width; column++) {
        const int16_t *source = pack + (size_t)firsts[column] * 2 * step;
        int32_t sums[24] = {0};
        for (int32_t pair = 0; pair < counts[column]; pair++, source += 2 * step, weights += 2) {
            for (size_t lane = 0; lane < step; lane++) {
                sums[lane] += source[2 * lane] * weights[0] + source[2 * lane + 1] * weights[1];
            }
        }
        store_column(sums, channels, scale, rows, row_count, column);
    }
}

#define ADD_PAIRS(...) add_pairs_plain(__VA_ARGS__);
#define STORE_COLUMNS(...) store_columns_plain(__VA_ARGS__);

#endif

// Interleaves a part of some rows in pairs.
INLINE void load_pairs(
    const uint8_t *const *rows, size_t row_count, size_t channels, size_t start, size_t length,
    uint16_t (*pairs)[2 * part_length]) {
    for (size_t row = 0; row < row_count; row += 2) {
        const uint8_t *first = rows[row] + start;
        // The last row of an odd number is paired with itself, with a weight of 0.
        const uint8_t *second = row + 1 < row_count ? rows[row + 1] + start : first;
        if (channels == 4) {
            load_pair(first, second, pairs[row / 2], length, 4);
        } else {
            load_pair(first, second, pairs[row / 2], length, 1);
        }
    }
}

// Adds the pairs whose weights are not 0.
INLINE void add_shares(
    int32_t *sum, uint16_t (*pairs)[2 * part_length], const int16_t *shares, size_t pair_count, size_t length) {
    size_t first = 0, end = pair_count;
    while (first < end && shares[2 * first] == 0 && shares[2 * first + 1] == 0) first++;
    while (end > first && shares[2 * end - 2] == 0 && shares[2 * end - 1] == 0) end--;
    ADD_PAIRS(sum, pairs + first, shares + 2 * first, end - first, length)
}

KERNEL void cpixels_add_rows(
    const uint8_t *const *rows, size_t row_count, size_t channels, int32_t *const *sums, const int16_t *weights,
    const bool *is_new, size_t sum_count, size_t width) {
    _Alignas(64) uint16_t pairs[cpixels_most_rows / 2][2 * part_length];
    size_t count = padded(width * channels);
    for (size_t start = 0; start < count; start += part_length) {
        size_t length = count - start < part_length ? count - start : part_length;
        load_pairs(rows, row_count, channels, start, length, pairs);
        for (size_t index = 0; index < sum_count; index++) {
            int32_t *sum = sums[index] + start;
            if (is_new[index]) memset(sum, 0, length * sizeof(int32_t));
            add_shares(sum, pairs, weights + index * cpixels_most_rows, (row_count + 1) / 2, length);
        }
    }
}

INLINE void pack_any_sums(
    const int32_t *sums, size_t channels, size_t place, int unit_bits, int16_t *pack, size_t width) {
    int shift = whole_shift(unit_bits, channels);
    switch (channels) {
    case 1: pack_sums(sums, 1, place, shift, pack, width); break;
    case 3: pack_sums(sums, 3, place, shift, pack, width); break;
    default: pack_sums(sums, 4, place, shift, pack, width); break;
    }
}

KERNEL void cpixels_pack_sums(
    const int32_t *sums, size_t channels, size_t place, int unit_bits, int16_t *pack, size_t width) {
    pack_any_sums(sums, channels, place, unit_bits, pack, width);
}

KERNEL void cpixels_pack_rows(
    const uint8_t *const *rows, size_t row_count, size_t channels, const int16_t *weights, size_t place_count,
    int unit_bits, int16_t *pack, size_t width) {
    _Alignas(64) uint16_t pairs[cpixels_most_packed_rows / 2][2 * part_length];
    _Alignas(64) int32_t sum[part_length + 16];
    // Each part contains whole pairs of pixels.
    size_t part = channels == 3 ? part_length - 16 : part_length;
    for (size_t column = 0; column < width; column += part / channels) {
        size_t columns = width - column < part / channels ? width - column : part / channels;
        size_t length = padded(columns * channels);
        load_pairs(rows, row_count, channels, column * channels, length, pairs);
        for (size_t place = 0; place < place_count; place++) {
            memset(sum, 0, sizeof(sum));
            add_shares(sum, pairs, weights + place * cpixels_most_packed_rows, (row_count + 1) / 2, length);
            pack_any_sums(
                sum, channels, place, unit_bits, pack + column * channels * cpixels_places(channels), columns);
        }
    }
}

void cpixels_store_columns(
    const int16_t *pack, size_t channels, const int32_t *firsts, const int32_t *counts, const int16_t *weights,
    int unit_bits, uint8_t *const *rows, size_t row_count, size_t width) {
    float scale = (channels == 4 ? 4.0f : 1.0f / 64) / (float)(1 << unit_bits);
    STORE_COLUMNS(pack, channels, firsts, counts, weights, scale, rows, row_count, width)
}
