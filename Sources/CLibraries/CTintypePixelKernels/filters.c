// SPDX-License-Identifier: Apache-2.0

#include "filters.h"

#include "dispatch.h"

// These loops keep their sums in registers. Compilers do so only if the sums are vectors.
#define WIDE_KERNEL CLONES("avx512bw", "avx2", "default")

typedef float vector __attribute__((vector_size(64), aligned(4)));

// These are macros, because functions pass vectors in other ways on processors with wider registers.
#define AT(numbers, index) (*(const vector *)((numbers) + 16 * (index)))
#define PUT(value, numbers, index) (*(vector *)((numbers) + 16 * (index)) = (value))

// The size of four vectors. AVX2 and AVX-512 have enough registers for so many sums.
enum { number_step = 64, word_step = 128 };
_Static_assert(CPIXELS_ROW_STEP % number_step == 0 && CPIXELS_ROW_STEP % word_step == 0, "rows have whole steps");

WIDE_KERNEL void cpixels_combine_rows(
    const float *const *rows, size_t row_count, const float *weights, float *const *targets, size_t target_count,
    int adds, size_t count) {
    for (size_t start = 0; start < count; start += number_step) {
        const float *weight = weights;
        for (size_t target = 0; target < target_count; target++) {
            float *sums = targets[target] + start;
            vector zero = {0};
            vector sum0 = adds ? AT(sums, 0) : zero;
            vector sum1 = adds ? AT(sums, 1) : zero;
            vector sum2 = adds ? AT(sums, 2) : zero;
            vector sum3 = adds ? AT(sums, 3) : zero;
            for (size_t row = 0; row < row_count; row++, weight++) {
                if (*weight == 0) continue;
                const float *numbers = rows[row] + start;
                sum0 += AT(numbers, 0) * *weight;
                sum1 += AT(numbers, 1) * *weight;
                sum2 += AT(numbers, 2) * *weight;
                sum3 += AT(numbers, 3) * *weight;
            }
            PUT(sum0, sums, 0);
            PUT(sum1, sums, 1);
            PUT(sum2, sums, 2);
            PUT(sum3, sums, 3);
        }
    }
}

WIDE_KERNEL void cpixels_convolve_row(
    const float *row, const float *weights, size_t radius, size_t distance, float *target, size_t count) {
    for (size_t start = 0; start < count; start += number_step) {
        const float *middle = row + start;
        vector sum0 = AT(middle, 0) * weights[0];
        vector sum1 = AT(middle, 1) * weights[0];
        vector sum2 = AT(middle, 2) * weights[0];
        vector sum3 = AT(middle, 3) * weights[0];
        for (size_t offset = 1; offset <= radius; offset++) {
            const float *before = middle - offset * distance;
            const float *after = middle + offset * distance;
            sum0 += (AT(before, 0) + AT(after, 0)) * weights[offset];
            sum1 += (AT(before, 1) + AT(after, 1)) * weights[offset];
            sum2 += (AT(before, 2) + AT(after, 2)) * weights[offset];
            sum3 += (AT(before, 3) + AT(after, 3)) * weights[offset];
        }
        PUT(sum0, target + start, 0);
        PUT(sum1, target + start, 1);
        PUT(sum2, target + start, 2);
        PUT(sum3, target + start, 3);
    }
}

typedef uint8_t bytes __attribute__((vector_size(16), aligned(1)));
typedef uint8_t aligned_bytes __attribute__((vector_size(16)));
typedef int32_t integers __attribute__((vector_size(64)));

#define SHUFFLE __builtin_shufflevector
#define CONVERT __builtin_convertvector

INLINE float limited(float value) {
    value = value > 0 ? value : 0;
    return value < 255 ? value : 255;
}

INLINE void load_pixel(const uint8_t *samples, float *numbers) {
    float share = samples[3] * (1.0f / 255);
    for (int channel = 0; channel < 3; channel++) numbers[channel] = samples[channel] * share;
    numbers[3] = samples[3];
}

INLINE void store_pixel(const float *numbers, uint8_t *samples) {
    float alpha = limited(numbers[3]);
    float scale = alpha >= 0.5f ? 255 / alpha : 0;
    for (int channel = 0; channel < 3; channel++)
        samples[channel] = (uint8_t)(limited(numbers[channel] * scale) + 0.5f);
    samples[3] = (uint8_t)(alpha + 0.5f);
}

WIDE_KERNEL void cpixels_load_samples(
    const uint8_t *samples, size_t channels, const float *light, float *numbers, size_t count) {
    if (light && channels == 4) {
        for (size_t index = 0; index < 4 * count; index += 4) {
            float alpha = samples[index + 3];
            float share = alpha * (1.0f / 255);
            for (int channel = 0; channel < 3; channel++)
                numbers[index + channel] = light[samples[index + channel]] * share;
            numbers[index + 3] = alpha;
        }
    } else if (light) {
        for (size_t index = 0; index < channels * count; index++) numbers[index] = light[samples[index]];
    } else if (channels == 4) {
        size_t index = 0;
        for (; index + 4 <= count; index += 4) {
            vector straight = CONVERT(*(const bytes *)(samples + 4 * index), vector);
            vector alpha = SHUFFLE(straight, straight, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15);
            vector colors = straight * (alpha * (1.0f / 255));
            PUT(SHUFFLE(colors, straight, 0, 1, 2, 19, 4, 5, 6, 23, 8, 9, 10, 27, 12, 13, 14, 31), numbers + 4 * index,
                0);
        }
        for (; index < count; index++) load_pixel(samples + 4 * index, numbers + 4 * index);
    } else {
        for (size_t index = 0; index < channels * count; index++) numbers[index] = samples[index];
    }
}

// Rounds 16 numbers to 0 to 255.
#define ROUNDED(value) CONVERT(CONVERT(LIMITED(value) + 0.5f, integers), aligned_bytes)
#define LIMITED(value) __builtin_elementwise_min(__builtin_elementwise_max(value, none), most)

WIDE_KERNEL void cpixels_store_samples(
    const float *numbers, const uint8_t *samples_of_light, uint8_t *samples, size_t channels, size_t count) {
    const vector none = {0};
    const vector most = none + 255;
    const vector one = none + 1;
    if (samples_of_light) {
        for (size_t index = 0; index < channels * count; index++) {
            float scale = 257;
            if (channels == 4) {
                float alpha = limited(numbers[index | 3]);
                if ((index & 3) == 3) {
                    samples[index] = (uint8_t)(alpha + 0.5f);
                    continue;
                }
                scale = alpha >= 0.5f ? 255 / alpha * 257 : 0;
            }
            float light = numbers[index] * scale;
            light = light > 0 ? light : 0;
            light = light < 65535 ? light : 65535;
            samples[index] = samples_of_light[(uint16_t)(int32_t)(light + 0.5f)];
        }
    } else if (channels == 4) {
        size_t index = 0;
        for (; index + 16 <= count; index += 16) {
            vector first = AT(numbers + 4 * index, 0), second = AT(numbers + 4 * index, 1);
            vector third = AT(numbers + 4 * index, 2), fourth = AT(numbers + 4 * index, 3);
            vector half = SHUFFLE(first, second, 3, 7, 11, 15, 19, 23, 27, 31, -1, -1, -1, -1, -1, -1, -1, -1);
            vector rest = SHUFFLE(third, fourth, 3, 7, 11, 15, 19, 23, 27, 31, -1, -1, -1, -1, -1, -1, -1, -1);
            vector alpha = SHUFFLE(half, rest, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
            alpha = LIMITED(alpha);
            vector scale = (vector)((integers)(255 / alpha) & (alpha >= 0.5f));
            // Alpha itself is not scaled.
            first *= SHUFFLE(scale, one, 0, 0, 0, 16, 1, 1, 1, 16, 2, 2, 2, 16, 3, 3, 3, 16);
            second *= SHUFFLE(scale, one, 4, 4, 4, 16, 5, 5, 5, 16, 6, 6, 6, 16, 7, 7, 7, 16);
            third *= SHUFFLE(scale, one, 8, 8, 8, 16, 9, 9, 9, 16, 10, 10, 10, 16, 11, 11, 11, 16);
            fourth *= SHUFFLE(scale, one, 12, 12, 12, 16, 13, 13, 13, 16, 14, 14, 14, 16, 15, 15, 15, 16);
            *(bytes *)(samples + 4 * index) = ROUNDED(first);
            *(bytes *)(samples + 4 * index + 16) = ROUNDED(second);
            *(bytes *)(samples + 4 * index + 32) = ROUNDED(third);
            *(bytes *)(samples + 4 * index + 48) = ROUNDED(fourth);
        }
        for (; index < count; index++) store_pixel(numbers + 4 * index, samples + 4 * index);
    } else {
        size_t index = 0, total = channels * count;
        for (; index + 16 <= total; index += 16) *(bytes *)(samples + index) = ROUNDED(AT(numbers + index, 0));
        for (; index < total; index++) samples[index] = (uint8_t)(limited(numbers[index]) + 0.5f);
    }
}

KERNEL void cpixels_add_row(const float *restrict row, double weight, double *restrict sums, size_t count) {
    for (size_t index = 0; index < count; index++) sums[index] += row[index] * weight;
}

INLINE void box_row(
    const double *restrict sums, size_t radius, size_t channels, double scale, float *restrict target, size_t width) {
    for (size_t channel = 0; channel < channels; channel++) {
        const double *column = sums + channel;
        double first = column[0], last = column[(width - 1) * channels];
        double sum = first * (double)(radius + 1);
        for (size_t offset = 1; offset <= radius && offset < width; offset++) sum += column[offset * channels];
        if (radius >= width) sum += last * (double)(radius + 1 - width);
        for (size_t pixel = 0; pixel < width; pixel++) {
            target[pixel * channels + channel] = (float)(sum * scale);
            double leaving = pixel > radius ? column[(pixel - radius) * channels] : first;
            double entering = pixel + radius + 1 < width ? column[(pixel + radius + 1) * channels] : last;
            sum += entering - leaving;
        }
    }
}

KERNEL void cpixels_box_row(
    const double *sums, size_t radius, size_t channels, double scale, float *target, size_t width) {
    switch (channels) {
    case 1: box_row(sums, radius, 1, scale, target, width); break;
    case 3: box_row(sums, radius, 3, scale, target, width); break;
    default: box_row(sums, radius, 4, scale, target, width); break;
    }
}

#define LUMA(red, green, blue) (0.2126f * (red) + 0.7152f * (green) + 0.0722f * (blue))

KERNEL void cpixels_load_luma(const uint8_t *restrict samples, size_t channels, float *restrict numbers, size_t count) {
    if (channels == 4) {
        for (size_t pixel = 0; pixel < count; pixel++) {
            const uint8_t *color = samples + 4 * pixel;
            numbers[2 * pixel] = LUMA(color[0], color[1], color[2]) * (color[3] * (1.0f / 255));
            numbers[2 * pixel + 1] = color[3];
        }
    } else {
        for (size_t pixel = 0; pixel < count; pixel++) {
            const uint8_t *color = samples + 3 * pixel;
            numbers[pixel] = LUMA(color[0], color[1], color[2]);
        }
    }
}

INLINE float distant(float difference, float amount, float threshold) {
    float size = difference < 0 ? -difference : difference;
    return size >= threshold ? difference * amount : 0;
}

INLINE uint8_t rounded(float value) {
    return (uint8_t)(int32_t)(limited(value) + 0.5f);
}

KERNEL void cpixels_sharpen_samples(
    const uint8_t *restrict samples, const float *restrict blurred, size_t channels, float amount, float threshold,
    uint8_t *restrict target, size_t count) {
    if (channels == 4) {
        for (size_t pixel = 0; pixel < count; pixel++) {
            const uint8_t *color = samples + 4 * pixel;
            const float *soft = blurred + 4 * pixel;
            float scale = soft[3] > 0 ? 255 / soft[3] : 0;
            uint8_t *made = target + 4 * pixel;
            made[0] = rounded(color[0] + distant(color[0] - soft[0] * scale, amount, threshold));
            made[1] = rounded(color[1] + distant(color[1] - soft[1] * scale, amount, threshold));
            made[2] = rounded(color[2] + distant(color[2] - soft[2] * scale, amount, threshold));
            made[3] = color[3];
        }
    } else {
        for (size_t index = 0; index < count * channels; index++) {
            target[index] = rounded(samples[index] + distant(samples[index] - blurred[index], amount, threshold));
        }
    }
}

KERNEL void cpixels_sharpen_luma(
    const uint8_t *restrict samples, const float *restrict blurred, size_t channels, float amount, float threshold,
    uint8_t *restrict target, size_t count) {
    if (channels == 4) {
        for (size_t pixel = 0; pixel < count; pixel++) {
            const uint8_t *color = samples + 4 * pixel;
            float alpha = blurred[2 * pixel + 1];
            float soft = alpha > 0 ? blurred[2 * pixel] * (255 / alpha) : 0;
            float step = distant(LUMA(color[0], color[1], color[2]) - soft, amount, threshold);
            uint8_t *made = target + 4 * pixel;
            made[0] = rounded(color[0] + step);
            made[1] = rounded(color[1] + step);
            made[2] = rounded(color[2] + step);
            made[3] = color[3];
        }
    } else {
        for (size_t pixel = 0; pixel < count; pixel++) {
            const uint8_t *color = samples + 3 * pixel;
            float step = distant(LUMA(color[0], color[1], color[2]) - blurred[pixel], amount, threshold);
            uint8_t *made = target + 3 * pixel;
            made[0] = rounded(color[0] + step);
            made[1] = rounded(color[1] + step);
            made[2] = rounded(color[2] + step);
        }
    }
}

void cpixels_average_blocks(
    const double *sums, size_t size, size_t rows, size_t channels, float *target, size_t width) {
    for (size_t start = 0; start < width; start += size) {
        size_t end = size < width - start ? start + size : width;
        double scale = 1 / ((double)(end - start) * (double)rows);
        for (size_t channel = 0; channel < channels; channel++) {
            double sum = 0;
            for (size_t pixel = start; pixel < end; pixel++) sum += sums[pixel * channels + channel];
            for (size_t pixel = start; pixel < end; pixel++) {
                target[pixel * channels + channel] = (float)(sum * scale);
            }
        }
    }
}

typedef uint16_t words __attribute__((vector_size(64), aligned(2)));
typedef uint32_t wide_words __attribute__((vector_size(128)));
typedef uint16_t half_words __attribute__((vector_size(32), aligned(2)));
typedef uint8_t many_bytes __attribute__((vector_size(32), aligned(1)));

#define WORDS(numbers, index) (*(const words *)((numbers) + 32 * (index)))
#define PUT_WORDS(value, numbers, index) (*(words *)((numbers) + 32 * (index)) = (value))
#define HIGH_PRODUCT(first, second) CONVERT((CONVERT(first, wide_words) * CONVERT(second, wide_words)) >> 16, words)
#define MEAN(first, second) CONVERT((CONVERT(first, wide_words) + CONVERT(second, wide_words) + 1) >> 1, words)

// So many numbers of ten rows and as many targets fit into a cache of 32 KiB.
enum { word_chunk = 512 };

WIDE_KERNEL void cpixels_combine_words(
    const uint16_t *const *rows, size_t row_count, const uint16_t *weights, uint16_t *const *targets,
    size_t target_count, int adds, size_t count) {
    const words none = {0};
    for (size_t chunk = 0; chunk < count; chunk += word_chunk) {
        size_t end = count - chunk < word_chunk ? count : chunk + word_chunk;
        for (size_t target = 0; target < target_count; target++) {
            const uint16_t *weight = weights + target * row_count;
            size_t first = 0, last = row_count;
            while (first < last && weight[first] == 0) first++;
            while (last > first && weight[last - 1] == 0) last--;
            for (size_t start = chunk; start < end; start += word_step) {
                uint16_t *sums = targets[target] + start;
                words sum0 = adds ? WORDS(sums, 0) : none;
                words sum1 = adds ? WORDS(sums, 1) : none;
                words sum2 = adds ? WORDS(sums, 2) : none;
                words sum3 = adds ? WORDS(sums, 3) : none;
                for (size_t row = first; row < last; row++) {
                    const uint16_t *numbers = rows[row] + start;
                    words share = none + weight[row];
                    sum0 += HIGH_PRODUCT(WORDS(numbers, 0), share);
                    sum1 += HIGH_PRODUCT(WORDS(numbers, 1), share);
                    sum2 += HIGH_PRODUCT(WORDS(numbers, 2), share);
                    sum3 += HIGH_PRODUCT(WORDS(numbers, 3), share);
                }
                PUT_WORDS(sum0, sums, 0);
                PUT_WORDS(sum1, sums, 1);
                PUT_WORDS(sum2, sums, 2);
                PUT_WORDS(sum3, sums, 3);
            }
        }
    }
}

WIDE_KERNEL void cpixels_convolve_words(
    const uint16_t *row, const uint16_t *weights, size_t radius, size_t distance, uint16_t *target, size_t count) {
    const words none = {0};
    for (size_t start = 0; start < count; start += word_step) {
        const uint16_t *middle = row + start;
        words share = none + weights[0];
        words sum0 = HIGH_PRODUCT(WORDS(middle, 0), share);
        words sum1 = HIGH_PRODUCT(WORDS(middle, 1), share);
        words sum2 = HIGH_PRODUCT(WORDS(middle, 2), share);
        words sum3 = HIGH_PRODUCT(WORDS(middle, 3), share);
        for (size_t offset = 1; offset <= radius; offset++) {
            const uint16_t *before = middle - offset * distance;
            const uint16_t *after = middle + offset * distance;
            share = none + weights[offset];
            sum0 += HIGH_PRODUCT(MEAN(WORDS(before, 0), WORDS(after, 0)), share);
            sum1 += HIGH_PRODUCT(MEAN(WORDS(before, 1), WORDS(after, 1)), share);
            sum2 += HIGH_PRODUCT(MEAN(WORDS(before, 2), WORDS(after, 2)), share);
            sum3 += HIGH_PRODUCT(MEAN(WORDS(before, 3), WORDS(after, 3)), share);
        }
        PUT_WORDS(sum0, target + start, 0);
        PUT_WORDS(sum1, target + start, 1);
        PUT_WORDS(sum2, target + start, 2);
        PUT_WORDS(sum3, target + start, 3);
    }
}

WIDE_KERNEL void cpixels_load_words(const uint8_t *samples, size_t channels, uint16_t *numbers, size_t count) {
    if (channels != 4) {
        for (size_t index = 0; index < channels * count; index++) numbers[index] = (uint16_t)(samples[index] * 255);
        return;
    }
    const words level = (words){0} + 255;
    size_t index = 0;
    for (; index + 8 <= count; index += 8) {
        words straight = CONVERT(*(const many_bytes *)(samples + 4 * index), words);
        words factor = SHUFFLE(
            straight, level, 3, 3, 3, 32, 7, 7, 7, 32, 11, 11, 11, 32, 15, 15, 15, 32, 19, 19, 19, 32, 23, 23, 23, 32,
            27, 27, 27, 32, 31, 31, 31, 32);
        PUT_WORDS(straight * factor, numbers + 4 * index, 0);
    }
    for (; index < count; index++) {
        for (int channel = 0; channel < 4; channel++) {
            uint8_t factor = channel < 3 ? samples[4 * index + 3] : 255;
            numbers[4 * index + channel] = (uint16_t)(samples[4 * index + channel] * factor);
        }
    }
}

// The average loss from truncated products. It is added to each number, but does not more than double it.
enum { lost = 16 };

WIDE_KERNEL void cpixels_store_words(const uint16_t *numbers, uint8_t *samples, size_t channels, size_t count) {
    if (channels != 4) {
        for (size_t index = 0; index < channels * count; index++) {
            uint16_t value = numbers[index];
            value = (uint16_t)(value + (value < lost ? value : lost));
            value = (value < 65025 ? value : 65025) + 128;
            samples[index] = (uint8_t)((uint16_t)(value + (value >> 8)) >> 8);
        }
        return;
    }
    const vector none = {0};
    const vector most = none + 255;
    const vector one = none + 1.0f / 255;
    size_t index = 0;
    for (; index + 16 <= count; index += 16) {
        const uint16_t *pixel = numbers + 4 * index;
        vector first = CONVERT(*(const half_words *)pixel, vector);
        vector second = CONVERT(*(const half_words *)(pixel + 16), vector);
        vector third = CONVERT(*(const half_words *)(pixel + 32), vector);
        vector fourth = CONVERT(*(const half_words *)(pixel + 48), vector);
        first += __builtin_elementwise_min(first, none + lost);
        second += __builtin_elementwise_min(second, none + lost);
        third += __builtin_elementwise_min(third, none + lost);
        fourth += __builtin_elementwise_min(fourth, none + lost);
        vector half = SHUFFLE(first, second, 3, 7, 11, 15, 19, 23, 27, 31, -1, -1, -1, -1, -1, -1, -1, -1);
        vector rest = SHUFFLE(third, fourth, 3, 7, 11, 15, 19, 23, 27, 31, -1, -1, -1, -1, -1, -1, -1, -1);
        vector alpha = SHUFFLE(half, rest, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        vector scale = (vector)((integers)(255 / alpha) & (alpha >= 127.5f));
        first *= SHUFFLE(scale, one, 0, 0, 0, 16, 1, 1, 1, 16, 2, 2, 2, 16, 3, 3, 3, 16);
        second *= SHUFFLE(scale, one, 4, 4, 4, 16, 5, 5, 5, 16, 6, 6, 6, 16, 7, 7, 7, 16);
        third *= SHUFFLE(scale, one, 8, 8, 8, 16, 9, 9, 9, 16, 10, 10, 10, 16, 11, 11, 11, 16);
        fourth *= SHUFFLE(scale, one, 12, 12, 12, 16, 13, 13, 13, 16, 14, 14, 14, 16, 15, 15, 15, 16);
        *(bytes *)(samples + 4 * index) = ROUNDED(first);
        *(bytes *)(samples + 4 * index + 16) = ROUNDED(second);
        *(bytes *)(samples + 4 * index + 32) = ROUNDED(third);
        *(bytes *)(samples + 4 * index + 48) = ROUNDED(fourth);
    }
    for (; index < count; index++) {
        float pixel[4];
        for (int channel = 0; channel < 4; channel++) {
            float number = numbers[4 * index + channel];
            pixel[channel] = number + (number < lost ? number : lost);
        }
        float scale = pixel[3] >= 127.5f ? 255 / pixel[3] : 0;
        for (int channel = 0; channel < 3; channel++) {
            samples[4 * index + channel] = (uint8_t)(limited(pixel[channel] * scale) + 0.5f);
        }
        samples[4 * index + 3] = (uint8_t)(limited(pixel[3] * (1.0f / 255)) + 0.5f);
    }
}
