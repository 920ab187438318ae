// SPDX-License-Identifier: Apache-2.0

#include "CTintypeVP8L.h"

#include <string.h>

typedef uint8_t channels __attribute__((vector_size(4)));
typedef int16_t words __attribute__((vector_size(8)));

#define INLINE static inline __attribute__((always_inline))

INLINE size_t smaller(size_t first, size_t second) {
    return first < second ? first : second;
}

/// Adds the channels of two pixels, modulo 256.
INLINE uint32_t add(uint32_t first, uint32_t second) {
    uint32_t alpha_and_green = (first & 0xFF00FF00) + (second & 0xFF00FF00);
    uint32_t red_and_blue = (first & 0x00FF00FF) + (second & 0x00FF00FF);
    return (alpha_and_green & 0xFF00FF00) | (red_and_blue & 0x00FF00FF);
}

// MARK: Predictions

INLINE uint32_t mean(uint32_t first, uint32_t second) {
    return (((first ^ second) & 0xFEFEFEFE) >> 1) + (first & second);
}

INLINE words widen(uint32_t pixel) {
    channels bytes;
    memcpy(&bytes, &pixel, sizeof(bytes));
    return __builtin_convertvector(bytes, words);
}

INLINE uint32_t clamp(words values) {
    const words zero = {0, 0, 0, 0}, most = {255, 255, 255, 255};
    values = __builtin_elementwise_min(__builtin_elementwise_max(values, zero), most);
    channels bytes = __builtin_convertvector(values, channels);
    uint32_t pixel;
    memcpy(&pixel, &bytes, sizeof(pixel));
    return pixel;
}

/// Returns the top or the left pixel, whichever is nearer to their sum minus `corner`.
INLINE uint32_t nearest(uint32_t top, uint32_t left, uint32_t corner) {
    words middle = widen(corner);
    words differences =
        __builtin_elementwise_abs(widen(left) - middle) - __builtin_elementwise_abs(widen(top) - middle);
    return differences[0] + differences[1] + differences[2] + differences[3] <= 0 ? top : left;
}

INLINE uint32_t clamped_sum(uint32_t left, uint32_t top, uint32_t corner) {
    return clamp(widen(left) + widen(top) - widen(corner));
}

/// Returns `middle` plus half its difference from `corner`, rounded towards zero.
INLINE uint32_t clamped_half(uint32_t middle, uint32_t corner) {
    words value = widen(middle), difference = value - widen(corner);
    // A shift rounds down, so add 1 to negative differences first.
    return clamp(value + ((difference - (difference >> 15)) >> 1));
}

/// Adds predictions that may depend on the pixel to the left.
#define PREDICT(prediction)                               \
    for (size_t column = start; column < end; column++) { \
        left = add(pixels[column], prediction);           \
        pixels[column] = left;                            \
    }                                                     \
    break

static void predict(uint32_t *pixels, const uint32_t *above, size_t start, size_t end, uint32_t mode) {
    uint32_t left = pixels[start - 1];
    switch (mode) {
    case 1: PREDICT(left);
    case 2: PREDICT(above[column]);
    case 3: PREDICT(above[column + 1]);
    case 4: PREDICT(above[column - 1]);
    case 5: PREDICT(mean(mean(left, above[column + 1]), above[column]));
    case 6: PREDICT(mean(left, above[column - 1]));
    case 7: PREDICT(mean(left, above[column]));
    case 8: PREDICT(mean(above[column - 1], above[column]));
    case 9: PREDICT(mean(above[column], above[column + 1]));
    case 10: PREDICT(mean(mean(left, above[column - 1]), mean(above[column], above[column + 1])));
    case 11: PREDICT(nearest(above[column], left, above[column - 1]));
    case 12: PREDICT(clamped_sum(left, above[column], above[column - 1]));
    case 13: PREDICT(clamped_half(mean(left, above[column]), above[column - 1]));
    default: PREDICT(0xFF000000);
    }
}

void cvp8l_add_prediction(
    uint32_t *pixels, uint32_t *above, size_t width, size_t row, const uint32_t *modes, uint32_t size_bits) {
    if (row == 0) {
        pixels[0] = add(pixels[0], 0xFF000000);
        for (size_t column = 1; column < width; column++) pixels[column] = add(pixels[column], pixels[column - 1]);
    } else {
        size_t side = (size_t)1 << size_bits;
        modes += (row >> size_bits) * ((width + side - 1) >> size_bits);
        pixels[0] = add(pixels[0], above[0]);
        // The pixel to the right above the last one is the first of the row.
        above[width] = pixels[0];
        for (size_t start = 1, end; start < width; start = end) {
            size_t tile = start >> size_bits;
            end = smaller((tile + 1) << size_bits, width);
            predict(pixels, above, start, end, modes[tile] >> 8 & 0xF);
        }
    }
    memcpy(above, pixels, width * sizeof(uint32_t));
}

// MARK: Colours

INLINE int32_t signed_channel(uint32_t value) {
    return (int8_t)(uint8_t)value;
}

void cvp8l_add_colors(uint32_t *pixels, size_t width, size_t row, const uint32_t *factors, uint32_t size_bits) {
    size_t side = (size_t)1 << size_bits;
    factors += (row >> size_bits) * ((width + side - 1) >> size_bits);
    for (size_t start = 0, end; start < width; start = end, factors++) {
        end = smaller(start + side, width);
        int32_t green_to_red = signed_channel(*factors);
        int32_t green_to_blue = signed_channel(*factors >> 8);
        int32_t red_to_blue = signed_channel(*factors >> 16);
        for (size_t column = start; column < end; column++) {
            uint32_t pixel = pixels[column];
            int32_t green = signed_channel(pixel >> 8);
            uint32_t red = (pixel >> 16) + (uint32_t)(green_to_red * green >> 5);
            uint32_t blue =
                pixel + (uint32_t)(green_to_blue * green >> 5) + (uint32_t)(red_to_blue * signed_channel(red) >> 5);
            pixels[column] = (pixel & 0xFF00FF00) | (red & 0xFF) << 16 | (blue & 0xFF);
        }
    }
}

void cvp8l_add_green(uint32_t *pixels, size_t width) {
    for (size_t column = 0; column < width; column++) {
        uint32_t pixel = pixels[column], green = pixel >> 8 & 0xFF;
        uint32_t others = (pixel & 0x00FF00FF) + (green << 16 | green);
        pixels[column] = (pixel & 0xFF00FF00) | (others & 0x00FF00FF);
    }
}

void cvp8l_look_up(uint32_t *pixels, size_t width, const uint32_t *colors, uint32_t size_bits) {
    uint32_t bits_per_index = 8 >> size_bits, mask = (1u << bits_per_index) - 1;
    // From right to left, because the indices take less room than the pixels.
    for (size_t end = width, start; end > 0; end = start) {
        size_t coded = (end - 1) >> size_bits;
        uint32_t indices = pixels[coded] >> 8 & 0xFF;
        start = coded << size_bits;
        for (size_t column = start; column < end; column++) {
            pixels[column] = colors[indices & mask];
            indices >>= bits_per_index;
        }
    }
}

// MARK: Output

INLINE uint32_t little_endian(uint32_t value) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap32(value);
#else
    return value;
#endif
}

void cvp8l_write(const uint32_t *pixels, size_t count, uint8_t *target, bool has_alpha, bool is_opaque) {
    if (has_alpha) {
        uint32_t alpha = is_opaque ? 0xFF000000 : 0;
        for (size_t column = 0; column < count; column++) {
            uint32_t pixel = pixels[column];
            uint32_t reversed = (pixel & 0xFF00FF00) | (pixel >> 16 & 0xFF) | (pixel & 0xFF) << 16 | alpha;
            reversed = little_endian(reversed);
            memcpy(target + column * 4, &reversed, 4);
        }
        return;
    }
    if (count == 0) return;
    // Each pixel is stored as four bytes, and the next pixel overwrites the last of them.
    for (size_t column = 0; column + 1 < count; column++, target += 3) {
        uint32_t bytes = little_endian(__builtin_bswap32(pixels[column]) >> 8);
        memcpy(target, &bytes, 4);
    }
    uint32_t last = pixels[count - 1];
    target[0] = (uint8_t)(last >> 16);
    target[1] = (uint8_t)(last >> 8);
    target[2] = (uint8_t)last;
}
