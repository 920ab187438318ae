// SPDX-License-Identifier: Apache-2.0

#include "geometry.h"

#include <string.h>

#include "dispatch.h"

KERNEL void cpixels_fill(uint8_t *target, const uint8_t *color, size_t channels, size_t count) {
    switch (channels) {
    case 1: memset(target, color[0], count); break;
    case 3:
        for (size_t pixel = 0; pixel < count; pixel++) {
            target[3 * pixel] = color[0];
            target[3 * pixel + 1] = color[1];
            target[3 * pixel + 2] = color[2];
        }
        break;
    default:
        for (size_t pixel = 0; pixel < count; pixel++) memcpy(target + 4 * pixel, color, 4);
        break;
    }
}

#if defined(__x86_64__)
// Writes a whole cache line at once, so that the processor need not read it first. With narrower vectors, this is
// slower than a copy through the cache.
__attribute__((target("avx512f"))) static void copy_past_cache(
    const uint8_t *source, size_t source_stride, uint8_t *target, size_t target_stride, size_t count, size_t rows) {
    typedef uint8_t line __attribute__((vector_size(64)));
    typedef uint8_t any_line __attribute__((vector_size(64), aligned(1)));
    for (size_t row = 0; row < rows; row++, source += source_stride, target += target_stride) {
        size_t index = 0;
        for (; index + 64 <= count; index += 64)
            __builtin_nontemporal_store(*(const any_line *)(source + index), (line *)(target + index));
        memcpy(target + index, source + index, count - index);
    }
    // These stores are not ordered with later stores that publish them.
    __builtin_ia32_sfence();
}
#endif

void cpixels_copy_rows(
    const uint8_t *source, size_t source_stride, uint8_t *target, size_t target_stride, size_t count, size_t rows,
    int passes_cache) {
#if defined(__x86_64__)
    if (passes_cache && ((uintptr_t)target | target_stride) % 64 == 0 && __builtin_cpu_supports("avx512f")) {
        copy_past_cache(source, source_stride, target, target_stride, count, rows);
        return;
    }
#else
    (void)passes_cache;
#endif
    for (size_t row = 0; row < rows; row++) {
        memcpy(target + row * target_stride, source + row * source_stride, count);
    }
}

INLINE void convert(const uint8_t *source, size_t source_channels, uint8_t *target, size_t channels, size_t count) {
    if (source_channels == channels) {
        memcpy(target, source, channels * count);
        return;
    }
    const size_t green = source_channels > 1 ? 1 : 0, blue = source_channels > 1 ? 2 : 0;
    for (size_t pixel = 0; pixel < count; pixel++) {
        target[channels * pixel] = source[source_channels * pixel];
        if (channels == 1) continue;
        target[channels * pixel + 1] = source[source_channels * pixel + green];
        target[channels * pixel + 2] = source[source_channels * pixel + blue];
        if (channels == 4) target[channels * pixel + 3] = 255;
    }
}

KERNEL void cpixels_convert(
    const uint8_t *source, size_t source_channels, uint8_t *target, size_t channels, size_t count) {
    // Spell out the numbers of samples, so that the compiler knows them.
    if (source_channels == 1 && channels == 3)
        convert(source, 1, target, 3, count);
    else if (source_channels == 1 && channels == 4)
        convert(source, 1, target, 4, count);
    else if (source_channels == 3 && channels == 4)
        convert(source, 3, target, 4, count);
    else if (source_channels == 4 && channels == 3)
        convert(source, 4, target, 3, count);
    else if (source_channels == 4 && channels == 1)
        convert(source, 4, target, 1, count);
    else
        convert(source, source_channels, target, channels, count);
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint32_t words4 __attribute__((vector_size(16)));
typedef uint32_t unaligned_word __attribute__((aligned(1), may_alias));

KERNEL void cpixels_mirror(const uint8_t *source, uint8_t *target, size_t channels, size_t count) {
    if (channels == 1) {
        for (size_t pixel = 0; pixel < count; pixel++) target[pixel] = source[count - 1 - pixel];
        return;
    }
    if (channels == 4) {
        const unaligned_word *from = (const unaligned_word *)source;
        unaligned_word *to = (unaligned_word *)target;
        for (size_t pixel = 0; pixel < count; pixel++) to[pixel] = from[count - 1 - pixel];
        return;
    }
    size_t pixel = 0;
    // Each load covers one unused byte and then five pixels. The next store overwrites the last byte of each store.
    for (; pixel + 6 <= count; pixel += 5) {
        bytes16 samples;
        memcpy(&samples, source + 3 * (count - 5 - pixel) - 1, 16);
        samples = __builtin_shufflevector(samples, samples, 13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
        memcpy(target + 3 * pixel, &samples, 16);
    }
    for (; pixel < count; pixel++) memcpy(target + 3 * pixel, source + 3 * (count - 1 - pixel), 3);
}

INLINE void transpose4(words4 rows[4]) {
    words4 a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5),
           b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    words4 c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7),
           d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    rows[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    rows[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    rows[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    rows[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/// Transposes pixels one by one.
INLINE void transpose_pixels(
    const uint8_t *source, ptrdiff_t source_stride, uint8_t *target, ptrdiff_t target_stride, size_t channels,
    size_t columns, size_t rows) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < columns; column++)
            memcpy(
                target + (ptrdiff_t)row * target_stride + channels * column,
                source + (ptrdiff_t)column * source_stride + channels * row, channels);
    }
}

INLINE void transpose_words(
    const uint8_t *source, ptrdiff_t source_stride, uint8_t *target, ptrdiff_t target_stride, size_t columns,
    size_t rows) {
    size_t row = 0;
    for (; row + 4 <= rows; row += 4) {
        size_t column = 0;
        for (; column + 4 <= columns; column += 4) {
            words4 block[4];
            for (int i = 0; i < 4; i++)
                memcpy(&block[i], source + (ptrdiff_t)(column + i) * source_stride + 4 * row, 16);
            transpose4(block);
            for (int i = 0; i < 4; i++)
                memcpy(target + (ptrdiff_t)(row + i) * target_stride + 4 * column, &block[i], 16);
        }
        transpose_pixels(
            source + (ptrdiff_t)column * source_stride + 4 * row, source_stride,
            target + (ptrdiff_t)row * target_stride + 4 * column, target_stride, 4, columns - column, 4);
    }
    transpose_pixels(
        source + 4 * row, source_stride, target + (ptrdiff_t)row * target_stride, target_stride, 4, columns,
        rows - row);
}

/// Transposes blocks of 4 by 4 pixels. Loads and stores reach four bytes beyond the pixels of a block. `spare_rows` and
/// `spare_columns` say how many pixels follow the last ones.
INLINE void transpose_triples(
    const uint8_t *source, ptrdiff_t source_stride, uint8_t *target, ptrdiff_t target_stride, size_t columns,
    size_t rows, size_t spare_columns, size_t spare_rows) {
    size_t row = 0;
    for (; row + 4 <= rows && row + 6 <= rows + spare_rows; row += 4) {
        size_t column = 0;
        for (; column + 4 <= columns && column + 6 <= columns + spare_columns; column += 4) {
            words4 block[4];
            for (int i = 0; i < 4; i++) {
                bytes16 samples;
                memcpy(&samples, source + (ptrdiff_t)(column + i) * source_stride + 3 * row, 16);
                block[i] = (words4)__builtin_shufflevector(
                    samples, samples, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
            }
            transpose4(block);
            for (int i = 0; i < 4; i++) {
                bytes16 samples = (bytes16)block[i];
                samples =
                    __builtin_shufflevector(samples, samples, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15);
                memcpy(target + (ptrdiff_t)(row + i) * target_stride + 3 * column, &samples, 16);
            }
        }
        transpose_pixels(
            source + (ptrdiff_t)column * source_stride + 3 * row, source_stride,
            target + (ptrdiff_t)row * target_stride + 3 * column, target_stride, 3, columns - column, 4);
    }
    transpose_pixels(
        source + 3 * row, source_stride, target + (ptrdiff_t)row * target_stride, target_stride, 3, columns,
        rows - row);
}

KERNEL void cpixels_transpose(
    const uint8_t *source, ptrdiff_t source_stride, uint8_t *target, ptrdiff_t target_stride, size_t channels,
    size_t columns, size_t rows) {
    // With four samples per pixel, the lines of a tile are whole cache lines on both sides.
    enum { tile = 16 };
    for (size_t row = 0; row < rows; row += tile) {
        size_t height = rows - row < tile ? rows - row : tile;
        for (size_t column = 0; column < columns; column += tile) {
            size_t width = columns - column < tile ? columns - column : tile;
            const uint8_t *from = source + (ptrdiff_t)column * source_stride + channels * row;
            uint8_t *to = target + (ptrdiff_t)row * target_stride + channels * column;
            if (channels == 4)
                transpose_words(from, source_stride, to, target_stride, width, height);
            else if (channels == 3)
                transpose_triples(
                    from, source_stride, to, target_stride, width, height, columns - column - width,
                    rows - row - height);
            else
                transpose_pixels(from, source_stride, to, target_stride, 1, width, height);
        }
    }
}

/// Returns the absolute difference of two numbers.
INLINE int32_t distance(int32_t first, int32_t second) {
    return first < second ? second - first : first - second;
}

/// Returns 1 if a pixel differs from a colour by more than the tolerance, otherwise 0.
INLINE int32_t is_unlike(const uint8_t *pixel, size_t channels, const cpixels_likeness *likeness) {
    const int32_t alpha = channels == 4 ? pixel[3] : 255, tolerance = likeness->tolerance * 255;
    const size_t green = channels > 1 ? 1 : 0, blue = channels > 1 ? 2 : 0;
    return (distance(pixel[0] * alpha, likeness->color[0]) > tolerance)
        | (distance(pixel[green] * alpha, likeness->color[1]) > tolerance)
        | (distance(pixel[blue] * alpha, likeness->color[2]) > tolerance)
        | (distance(alpha * 255, likeness->color[3]) > tolerance);
}

enum { search_block = 64 };

INLINE size_t first_unlike(const uint8_t *pixels, size_t channels, size_t count, const cpixels_likeness *likeness) {
    for (size_t start = 0; start < count; start += search_block) {
        size_t end = start + search_block < count ? start + search_block : count;
        int32_t any = 0;
        for (size_t pixel = start; pixel < end; pixel++)
            any |= is_unlike(pixels + channels * pixel, channels, likeness);
        if (!any) continue;
        for (size_t pixel = start; pixel < end; pixel++) {
            if (is_unlike(pixels + channels * pixel, channels, likeness)) return pixel;
        }
    }
    return count;
}

INLINE size_t end_of_unlike(const uint8_t *pixels, size_t channels, size_t count, const cpixels_likeness *likeness) {
    for (size_t end = count; end > 0;) {
        size_t start = end > search_block ? end - search_block : 0;
        int32_t any = 0;
        for (size_t pixel = start; pixel < end; pixel++)
            any |= is_unlike(pixels + channels * pixel, channels, likeness);
        for (; any && end > start; end--) {
            if (is_unlike(pixels + channels * (end - 1), channels, likeness)) return end;
        }
        end = start;
    }
    return 0;
}

KERNEL size_t
cpixels_first_unlike(const uint8_t *pixels, size_t channels, size_t count, const cpixels_likeness *likeness) {
    switch (channels) {
    case 1: return first_unlike(pixels, 1, count, likeness);
    case 3: return first_unlike(pixels, 3, count, likeness);
    default: return first_unlike(pixels, 4, count, likeness);
    }
}

KERNEL size_t
cpixels_end_of_unlike(const uint8_t *pixels, size_t channels, size_t count, const cpixels_likeness *likeness) {
    switch (channels) {
    case 1: return end_of_unlike(pixels, 1, count, likeness);
    case 3: return end_of_unlike(pixels, 3, count, likeness);
    default: return end_of_unlike(pixels, 4, count, likeness);
    }
}

typedef uint8_t bytes4 __attribute__((vector_size(4)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef float floats4 __attribute__((vector_size(16)));
typedef float floats8 __attribute__((vector_size(32)));

enum { half_bits = CPIXELS_ROTATION_BITS - 1, chunk = 256 };
static const int64_t one = (int64_t)1 << CPIXELS_ROTATION_BITS;
static const int64_t half = (int64_t)1 << half_bits;

typedef struct {
    int64_t first;
    int64_t end;
} span;

INLINE int64_t divided_up(int64_t value, int64_t divisor) {
    return value / divisor + (value % divisor > 0);
}

/// Returns which of `count` places are at least `low` and below `high`. The first is at `start`, and they are `step`
/// apart.
INLINE span places_within(int64_t start, int64_t step, int64_t low, int64_t high, span all) {
    if (step == 0) return start >= low && start < high ? all : (span){0, 0};
    // Mirror steps to the left, so that they go to the right. Each inclusive bound becomes exclusive, and the reverse.
    if (step < 0) {
        int64_t mirrored_low = 1 - high;
        high = 1 - low;
        low = mirrored_low;
        start = -start;
        step = -step;
    }
    int64_t first = divided_up(low - start, step);
    int64_t end = divided_up(high - start, step);
    span result = {first > all.first ? first : all.first, end < all.end ? end : all.end};
    return result.first < result.end ? result : (span){0, 0};
}

/// Returns which of `count` pixels are in the image. They must be at least `margin` from its left and top borders, and
/// `far_margin` from the other borders.
INLINE span pixels_within(
    const cpixels_rotation *rotation, int64_t column, int64_t row, size_t count, int64_t margin, int64_t far_margin) {
    span all = {0, (int64_t)count};
    all = places_within(column, rotation->column_step, margin, rotation->width * one - far_margin, all);
    return places_within(row, rotation->row_step, margin, rotation->height * one - far_margin, all);
}

/// Returns the fractional part of a coordinate.
INLINE float fraction(int64_t place) {
    return (float)(int32_t)((place & (one - 1)) >> (CPIXELS_ROTATION_BITS - 24)) * (1.0f / (1 << 24));
}

INLINE floats4 all(float value) {
    return (floats4){value, value, value, value};
}

INLINE floats4 limited(floats4 value) {
    return __builtin_elementwise_min(__builtin_elementwise_max(value, all(0)), all(255));
}

INLINE void store(uint8_t *target, floats4 value) {
    ints4 rounded = __builtin_convertvector(limited(value) + 0.5f, ints4);
    bytes4 samples = __builtin_convertvector(rounded, bytes4);
    memcpy(target, &samples, 4);
}

/// Limits a premultiplied pixel to valid values, because the cubic overshoots.
INLINE floats4 settled(floats4 value) {
    value = __builtin_elementwise_max(value, all(0));
    if (value[3] > 255) value *= 255 / value[3];
    return __builtin_elementwise_min(value, all(value[3]));
}

/// Writes a premultiplied pixel with straight alpha.
INLINE void store_straight(uint8_t *target, floats4 value) {
    value = settled(value);
    float alpha = value[3];
    if (alpha < 0.5f) {
        memset(target, 0, 4);
        return;
    }
    value *= 255 / alpha;
    value[3] = alpha;
    store(target, value);
}

/// Returns a pixel of the source, premultiplied.
INLINE floats4 pixel_at(const cpixels_rotation *rotation, int32_t channels, int64_t column, int64_t row) {
    column = column < 0 ? 0 : column < rotation->width ? column : rotation->width - 1;
    row = row < 0 ? 0 : row < rotation->height ? row : rotation->height - 1;
    const uint8_t *pixel = rotation->pixels + (size_t)row * rotation->bytes_per_row + (size_t)column * channels;
    if (channels == 1) return (floats4){pixel[0], pixel[0], pixel[0], 255};
    if (channels == 3) return (floats4){pixel[0], pixel[1], pixel[2], 255};
    float share = pixel[3] / 255.0f;
    return (floats4){pixel[0] * share, pixel[1] * share, pixel[2] * share, pixel[3]};
}

/// Returns the weights of four consecutive pixels, for a position `t` behind the second one.
INLINE floats4 cubic_weights(float t) {
    const floats4 third = {-0.5f, 1.5f, -1.5f, 0.5f}, second = {1, -2.5f, 2, -0.5f};
    const floats4 first = {-0.5f, 0, 0.5f, 0}, constant = {0, 1, 0, 0};
    return ((third * t + second) * t + first) * t + constant;
}

/// Returns the share of a pixel that the image covers, along an axis of `length` pixels.
INLINE float coverage_along(int64_t place, int64_t length) {
    int64_t inside = place < length * one - place ? place : length * one - place;
    float share = (float)(inside + half) / (float)one;
    return share < 0 ? 0 : share < 1 ? share : 1;
}

/// Computes a premultiplied pixel at the border. It is slow, but correct everywhere.
INLINE floats4 border_pixel(const cpixels_rotation *rotation, int32_t channels, int taps, int64_t column, int64_t row) {
    float coverage = coverage_along(column, rotation->width) * coverage_along(row, rotation->height);
    int64_t left = (column - half) >> CPIXELS_ROTATION_BITS, top = (row - half) >> CPIXELS_ROTATION_BITS;
    float across = fraction(column - half), down = fraction(row - half);
    floats4 columns = taps == 4 ? cubic_weights(across) : (floats4){0, 1 - across, across, 0};
    floats4 rows = taps == 4 ? cubic_weights(down) : (floats4){0, 1 - down, down, 0};
    floats4 sum = all(0);
    for (int y = 0; y < 4; y++) {
        if (taps == 2 && (y == 0 || y == 3)) continue;
        floats4 line = all(0);
        for (int x = 0; x < 4; x++) line += pixel_at(rotation, channels, left + x - 1, top + y - 1) * columns[x];
        sum += line * rows[y];
    }
    sum = settled(sum);
    const uint8_t *straight = rotation->background;
    float share = straight[3] / 255.0f;
    floats4 background = {straight[0] * share, straight[1] * share, straight[2] * share, straight[3]};
    return sum * coverage + background * (1 - coverage);
}

/// Loads two adjacent pixels, starting at `pixel`. Reads eight bytes.
INLINE void load_pair(const uint8_t *pixel, floats8 *pair) {
    bytes8 samples;
    memcpy(&samples, pixel, 8);
    *pair = __builtin_convertvector(samples, floats8);
}

INLINE void premultiply_pair(floats8 *pair) {
    floats8 alpha = __builtin_shufflevector(*pair, *pair, 3, 3, 3, 3, 7, 7, 7, 7) * (1.0f / 255);
    alpha[3] = 1;
    alpha[7] = 1;
    *pair *= alpha;
}

/// Returns the sum of both pixels of a pair.
INLINE floats4 folded(const floats8 *pair, int32_t channels) {
    floats4 first = __builtin_shufflevector(*pair, *pair, 0, 1, 2, 3);
    if (channels == 4) return first + __builtin_shufflevector(*pair, *pair, 4, 5, 6, 7);
    return first + __builtin_shufflevector(*pair, *pair, 3, 4, 5, 5);
}

INLINE void weight_pair(float first, float second, int32_t channels, floats8 *weights) {
    if (channels == 4)
        *weights = (floats8){first, first, first, first, second, second, second, second};
    else
        *weights = (floats8){first, first, first, second, second, second, 0, 0};
}

INLINE uint64_t word(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, 8);
    return value;
}

static const uint64_t opaque_pair = 0xff000000ff000000u;

/// Computes a pixel whose neighbours are all in the image.
INLINE void bilinear_pixel(
    const cpixels_rotation *rotation, int32_t channels, int64_t column, int64_t row, uint8_t *target) {
    int64_t left = (column - half) >> CPIXELS_ROTATION_BITS, top = (row - half) >> CPIXELS_ROTATION_BITS;
    float across = fraction(column - half), down = fraction(row - half);
    const uint8_t *upper = rotation->pixels + (size_t)top * rotation->bytes_per_row + (size_t)left * channels;
    const uint8_t *lower = upper + rotation->bytes_per_row;
    if (channels == 1) {
        float first = upper[0] + (lower[0] - upper[0]) * down, second = upper[1] + (lower[1] - upper[1]) * down;
        store(target, (floats4){1, 1, 1, 0} * (first + (second - first) * across) + (floats4){0, 0, 0, 255});
        return;
    }
    floats8 above, below, weights;
    load_pair(upper, &above);
    load_pair(lower, &below);
    weight_pair(1 - across, across, channels, &weights);
    int is_opaque = channels == 3 || (word(upper) & word(lower) & opaque_pair) == opaque_pair;
    if (!is_opaque) {
        premultiply_pair(&above);
        premultiply_pair(&below);
    }
    floats8 pair = (above + (below - above) * down) * weights;
    floats4 sum = folded(&pair, channels);
    if (channels == 3) sum[3] = 255;
    if (is_opaque)
        store(target, sum);
    else
        store_straight(target, sum);
}

INLINE void bicubic_pixel(
    const cpixels_rotation *rotation, int32_t channels, int64_t column, int64_t row, uint8_t *target) {
    int64_t left = (column - half) >> CPIXELS_ROTATION_BITS, top = (row - half) >> CPIXELS_ROTATION_BITS;
    floats4 columns = cubic_weights(fraction(column - half)), rows = cubic_weights(fraction(row - half));
    const uint8_t *first =
        rotation->pixels + (size_t)(top - 1) * rotation->bytes_per_row + (size_t)(left - 1) * channels;
    if (channels == 1) {
        float sum = 0;
        for (int y = 0; y < 4; y++) {
            const uint8_t *line = first + y * rotation->bytes_per_row;
            sum +=
                (line[0] * columns[0] + line[1] * columns[1] + line[2] * columns[2] + line[3] * columns[3]) * rows[y];
        }
        store(target, (floats4){1, 1, 1, 0} * sum + (floats4){0, 0, 0, 255});
        return;
    }
    uint64_t alphas = opaque_pair;
    if (channels == 4) {
        for (int y = 0; y < 4; y++) {
            const uint8_t *line = first + y * rotation->bytes_per_row;
            alphas &= word(line) & word(line + 8);
        }
    }
    int is_opaque = channels == 3 || alphas == opaque_pair;
    floats8 near = {0}, far = {0}, pair, near_weights, far_weights;
    for (int y = 0; y < 4; y++) {
        const uint8_t *line = first + y * rotation->bytes_per_row;
        load_pair(line, &pair);
        if (!is_opaque) premultiply_pair(&pair);
        near += pair * rows[y];
        load_pair(line + 2 * channels, &pair);
        if (!is_opaque) premultiply_pair(&pair);
        far += pair * rows[y];
    }
    weight_pair(columns[0], columns[1], channels, &near_weights);
    weight_pair(columns[2], columns[3], channels, &far_weights);
    pair = near * near_weights + far * far_weights;
    floats4 sum = folded(&pair, channels);
    if (channels == 3) sum[3] = 255;
    if (is_opaque)
        store(target, sum);
    else
        store_straight(target, sum);
}

INLINE void rotate_chunk(
    const cpixels_rotation *rotation, int32_t channels, int taps, int64_t column, int64_t row, uint8_t *rgba,
    size_t count) {
    const int64_t column_step = rotation->column_step, row_step = rotation->row_step;
    // Each load reads eight bytes, up to two pixels beyond the last neighbour.
    int64_t margin = taps == 4 ? one + half : half, far_margin = margin + 2 * one;
    span touched = pixels_within(rotation, column, row, count, -half, -half);
    span inside = pixels_within(rotation, column, row, count, margin, far_margin);
    if (inside.first >= inside.end) inside = (span){touched.end, touched.end};
    for (int64_t pixel = 0; pixel < (int64_t)count; pixel++) {
        if (pixel == touched.first) pixel = touched.end;
        if (pixel < (int64_t)count) memcpy(rgba + 4 * pixel, rotation->background, 4);
    }
    for (int64_t pixel = touched.first; pixel < touched.end; pixel++) {
        if (pixel == inside.first) pixel = inside.end;
        if (pixel >= touched.end) break;
        int64_t x = column + pixel * column_step, y = row + pixel * row_step;
        store_straight(rgba + 4 * pixel, border_pixel(rotation, channels, taps, x, y));
    }
    int64_t x = column + inside.first * column_step, y = row + inside.first * row_step;
    for (int64_t pixel = inside.first; pixel < inside.end; pixel++) {
        if (taps == 4)
            bicubic_pixel(rotation, channels, x, y, rgba + 4 * pixel);
        else
            bilinear_pixel(rotation, channels, x, y, rgba + 4 * pixel);
        x += column_step;
        y += row_step;
    }
}

INLINE void nearest_chunk(
    const cpixels_rotation *rotation, int32_t channels, int taps, int64_t column, int64_t row, uint8_t *rgba,
    size_t count) {
    (void)taps;
    span touched = pixels_within(rotation, column, row, count, 0, 0);
    // Each load reads four bytes, one more than the last pixel has.
    span inside = pixels_within(rotation, column, row, count, 0, one);
    if (inside.first >= inside.end) inside = (span){touched.end, touched.end};
    for (int64_t pixel = 0; pixel < touched.first; pixel++) memcpy(rgba + 4 * pixel, rotation->background, 4);
    for (int64_t pixel = touched.first; pixel < touched.end; pixel++) {
        int64_t x = (column + pixel * rotation->column_step) >> CPIXELS_ROTATION_BITS;
        int64_t y = (row + pixel * rotation->row_step) >> CPIXELS_ROTATION_BITS;
        const uint8_t *source = rotation->pixels + (size_t)y * rotation->bytes_per_row + (size_t)x * channels;
        uint8_t *target = rgba + 4 * pixel;
        if (channels > 1 && pixel >= inside.first && pixel < inside.end) {
            memcpy(target, source, 4);
        } else {
            target[0] = source[0];
            target[1] = source[channels == 1 ? 0 : 1];
            target[2] = source[channels == 1 ? 0 : 2];
            target[3] = source[channels == 4 ? 3 : 0];
        }
        if (channels < 4) target[3] = 255;
    }
    for (int64_t pixel = touched.end; pixel < (int64_t)count; pixel++)
        memcpy(rgba + 4 * pixel, rotation->background, 4);
}

// Loops over the chunks of a row. `chunk_of` is inlined for each kind of source.
#define ROTATE_ROW(chunk_of, taps)                                                          \
    uint8_t packed[4 * chunk];                                                              \
    const size_t channels = (size_t)rotation->target_channels;                              \
    for (size_t start = 0; start < count; start += chunk) {                                 \
        size_t length = count - start < chunk ? count - start : chunk;                      \
        uint8_t *rgba = channels == 4 ? target + 4 * start : packed;                        \
        switch (rotation->channels) {                                                       \
        case 1: chunk_of(rotation, 1, taps, column, row, rgba, length); break;              \
        case 3: chunk_of(rotation, 3, taps, column, row, rgba, length); break;              \
        default: chunk_of(rotation, 4, taps, column, row, rgba, length); break;             \
        }                                                                                   \
        if (channels != 4) convert(packed, 4, target + channels * start, channels, length); \
        column += rotation->column_step * chunk;                                            \
        row += rotation->row_step * chunk;                                                  \
    }

KERNEL void cpixels_rotate_nearest(
    const cpixels_rotation *rotation, int64_t column, int64_t row, uint8_t *target,
    size_t count){ROTATE_ROW(nearest_chunk, 1)}

KERNEL void cpixels_rotate_bilinear(
    const cpixels_rotation *rotation, int64_t column, int64_t row, uint8_t *target,
    size_t count){ROTATE_ROW(rotate_chunk, 2)}

KERNEL void cpixels_rotate_bicubic(
    const cpixels_rotation *rotation, int64_t column, int64_t row, uint8_t *target, size_t count) {
    ROTATE_ROW(rotate_chunk, 4)
}
