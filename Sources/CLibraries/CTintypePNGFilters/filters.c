// SPDX-License-Identifier: Apache-2.0

#include "CTintypePNGFilters.h"

#include <string.h>

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef int16_t words8 __attribute__((vector_size(16)));

enum { FILTER_NONE, FILTER_SUB, FILTER_UP, FILTER_AVERAGE, FILTER_PAETH };

#define INLINE static inline __attribute__((always_inline))

INLINE bytes8 load(const uint8_t *from, size_t count) {
    bytes8 result = {0};
    memcpy(&result, from, count);
    return result;
}

INLINE void store(uint8_t *to, bytes8 pixel, size_t count) {
    memcpy(to, &pixel, count);
}

INLINE words8 widen(bytes8 bytes) {
    return __builtin_convertvector(bytes, words8);
}

INLINE bytes8 narrow(words8 words) {
    return __builtin_convertvector(words, bytes8);
}

INLINE words8 choose(words8 mask, words8 yes, words8 no) {
    return (mask & yes) | (~mask & no);
}

/// Returns the neighbour nearest to left + above - corner, and the first one of equal distances.
///
/// The formula differs from the one in the specification, but has the same result. Fewer steps depend on `left`, the
/// pixel that was just decoded.
INLINE words8 paeth(words8 left, words8 above, words8 corner) {
    words8 threshold = (corner + corner + corner - above) - left;
    words8 low = __builtin_elementwise_min(left, above);
    words8 high = __builtin_elementwise_max(left, above);
    words8 inner = choose(high <= threshold, low, corner);
    return choose(threshold <= low, high, inner);
}

/// Adds words below 256, modulo 256.
INLINE words8 add_bytes(words8 first, words8 second) {
    return (words8)((bytes16)first + (bytes16)second);
}

// MARK: Undoing

static void undo_up(uint8_t *line, const uint8_t *filtered, const uint8_t *prior, size_t count) {
    size_t index = 0;
    for (; index + 16 <= count; index += 16) {
        bytes16 value, above;
        memcpy(&value, filtered + index, 16);
        memcpy(&above, prior + index, 16);
        value += above;
        memcpy(line + index, &value, 16);
    }
    for (; index < count; index++) line[index] = (uint8_t)(filtered[index] + prior[index]);
}

/// Loads and stores a pixel of three bytes as four bytes if there are four. The next pixel overwrites the fourth byte.
#define FOR_EACH_PIXEL(size, body)                         \
    do {                                                   \
        size_t index = 0;                                  \
        const size_t span = (size) == 3 ? 4 : (size);      \
        for (; index + span <= count; index += (size)) {   \
            const size_t width = span;                     \
            body                                           \
        }                                                  \
        for (; index + (size) <= count; index += (size)) { \
            const size_t width = (size);                   \
            body                                           \
        }                                                  \
    } while (0)

INLINE void undo_sub(uint8_t *line, const uint8_t *filtered, size_t count, size_t size) {
    bytes8 left = {0};
    FOR_EACH_PIXEL(size, {
        left += load(filtered + index, width);
        store(line + index, left, width);
    });
}

INLINE void undo_average(uint8_t *line, const uint8_t *filtered, const uint8_t *prior, size_t count, size_t size) {
    bytes8 left = {0};
    FOR_EACH_PIXEL(size, {
        bytes8 above = load(prior + index, width);
        // The mean, rounded down, without a ninth bit.
        left = load(filtered + index, width) + ((left & above) + ((left ^ above) >> 1));
        store(line + index, left, width);
    });
}

/// The number of bytes in a block, a multiple of every pixel size.
enum { BLOCK = 48 };

INLINE int is_zero(const uint8_t *block) {
    uint64_t words[BLOCK / 8], any = 0;
    memcpy(words, block, BLOCK);
    for (size_t index = 0; index < BLOCK / 8; index++) any |= words[index];
    return any == 0;
}

INLINE void undo_paeth(uint8_t *line, const uint8_t *filtered, const uint8_t *prior, size_t count, size_t size) {
    words8 left = {0};
    words8 corner = {0};
    const size_t span = size == 3 ? 4 : size;
    size_t index = 0;
    while (index + span <= count) {
        const int has_block = index + BLOCK + span <= count;
        // If a pixel equals the one above it and the filtered bytes are zero, the next pixel also equals the one above
        // it. So flat parts of drawings can be copied.
        if (has_block && is_zero(filtered + index)
            && (index == 0 || memcmp(line + index - size, prior + index - size, size) == 0)) {
            memcpy(line + index, prior + index, BLOCK);
            index += BLOCK;
            corner = left = widen(load(prior + index - size, size));
            continue;
        }
        const size_t end = has_block ? index + BLOCK : count - span + 1;
        for (; index < end; index += size) {
            words8 above = widen(load(prior + index, span));
            words8 value = widen(load(filtered + index, span));
            left = add_bytes(value, paeth(left, above, corner));
            corner = above;
            store(line + index, narrow(left), span);
        }
        if (!has_block) break;
    }
    for (; index + size <= count; index += size) {
        words8 above = widen(load(prior + index, size));
        words8 value = widen(load(filtered + index, size));
        left = add_bytes(value, paeth(left, above, corner));
        corner = above;
        store(line + index, narrow(left), size);
    }
}

INLINE void undo_in_pixels(
    int filter, uint8_t *line, const uint8_t *filtered, const uint8_t *prior, size_t count, size_t size) {
    switch (filter) {
    case FILTER_SUB: undo_sub(line, filtered, count, size); break;
    case FILTER_AVERAGE: undo_average(line, filtered, prior, count, size); break;
    default: undo_paeth(line, filtered, prior, count, size); break;
    }
}

/// Undoes a filter for pixels of one byte, because vectors of one byte would be slower.
static void undo_in_bytes(int filter, uint8_t *line, const uint8_t *filtered, const uint8_t *prior, size_t count) {
    uint8_t left = 0;
    int corner = 0;
    switch (filter) {
    case FILTER_SUB:
        for (size_t index = 0; index < count; index++) line[index] = left = (uint8_t)(left + filtered[index]);
        break;
    case FILTER_AVERAGE:
        for (size_t index = 0; index < count; index++) {
            line[index] = left = (uint8_t)(filtered[index] + ((left + prior[index]) >> 1));
        }
        break;
    default:
        for (size_t index = 0; index < count; index++) {
            int above = prior[index];
            int threshold = 3 * corner - above - left;
            int low = left < above ? left : above;
            int high = left < above ? above : left;
            int nearest = high <= threshold ? low : corner;
            nearest = threshold <= low ? high : nearest;
            corner = above;
            line[index] = left = (uint8_t)(filtered[index] + nearest);
        }
    }
}

int cpngfilters_undo(
    int filter, uint8_t *line, const uint8_t *filtered, const uint8_t *prior, size_t count, size_t bytes_per_pixel) {
    switch (filter) {
    case FILTER_NONE: memmove(line, filtered, count); return 1;
    case FILTER_UP: undo_up(line, filtered, prior, count); return 1;
    case FILTER_SUB:
    case FILTER_AVERAGE:
    case FILTER_PAETH: break;
    default: return 0;
    }
    switch (bytes_per_pixel) {
    case 1: undo_in_bytes(filter, line, filtered, prior, count); return 1;
    case 2: undo_in_pixels(filter, line, filtered, prior, count, 2); return 1;
    case 3: undo_in_pixels(filter, line, filtered, prior, count, 3); return 1;
    case 4: undo_in_pixels(filter, line, filtered, prior, count, 4); return 1;
    case 6: undo_in_pixels(filter, line, filtered, prior, count, 6); return 1;
    case 8: undo_in_pixels(filter, line, filtered, prior, count, 8); return 1;
    default: return 0;
    }
}

// MARK: Applying

typedef int16_t words16 __attribute__((vector_size(32)));

INLINE bytes16 load16(const uint8_t *from) {
    bytes16 result;
    memcpy(&result, from, 16);
    return result;
}

INLINE bytes16 paeth16(bytes16 left_bytes, bytes16 above_bytes, bytes16 corner_bytes) {
    words16 left = __builtin_convertvector(left_bytes, words16);
    words16 above = __builtin_convertvector(above_bytes, words16);
    words16 corner = __builtin_convertvector(corner_bytes, words16);
    words16 threshold = (corner + corner + corner - above) - left;
    words16 low = __builtin_elementwise_min(left, above);
    words16 high = __builtin_elementwise_max(left, above);
    words16 is_low = high <= threshold, is_high = threshold <= low;
    words16 inner = (is_low & low) | (~is_low & corner);
    return __builtin_convertvector((is_high & high) | (~is_high & inner), bytes16);
}

/// Predicts bytes from their neighbours.
INLINE bytes16 predict(int filter, bytes16 left, bytes16 above, bytes16 corner) {
    switch (filter) {
    case FILTER_SUB: return left;
    case FILTER_UP: return above;
    case FILTER_AVERAGE: return (left & above) + ((left ^ above) >> 1);
    case FILTER_PAETH: return paeth16(left, above, corner);
    default: return (bytes16){0};
    }
}

INLINE uint64_t
apply(int filter, uint8_t *filtered, const uint8_t *line, const uint8_t *prior, size_t count, size_t size) {
    uint64_t sum = 0;
    size_t index = 0;
    while (index < count) {
        // A word can hold the sum of some hundred distances, each at most 128.
        words16 sums = {0};
        const size_t piece = count - index < 2048 ? count : index + 2048;
        while (index < piece) {
            // The first pixel has no left neighbour, and the last piece has fewer bytes.
            const size_t width = index == 0 ? (size < count ? size : count) : piece - index < 16 ? piece - index : 16;
            bytes16 value = {0}, left = {0}, above = {0}, corner = {0};
            if (index > 0 && width == 16) {
                value = load16(line + index);
                left = load16(line + index - size);
                above = load16(prior + index);
                corner = load16(prior + index - size);
            } else {
                memcpy(&value, line + index, width);
                memcpy(&above, prior + index, width);
                if (index > 0) memcpy(&left, line + index - size, width);
                if (index > 0) memcpy(&corner, prior + index - size, width);
            }
            bytes16 result = value - predict(filter, left, above, corner);
            memcpy(filtered + index, &result, width);
            sums += __builtin_convertvector(__builtin_elementwise_min(result, -result), words16);
            index += width;
        }
        for (int lane = 0; lane < 16; lane++) sum += (uint16_t)sums[lane];
    }
    return sum;
}

uint64_t cpngfilters_apply(
    int filter, uint8_t *filtered, const uint8_t *line, const uint8_t *prior, size_t count, size_t bytes_per_pixel) {
    filtered[0] = (uint8_t)filter;
    switch (filter) {
    case FILTER_SUB: return apply(FILTER_SUB, filtered + 1, line, prior, count, bytes_per_pixel);
    case FILTER_UP: return apply(FILTER_UP, filtered + 1, line, prior, count, bytes_per_pixel);
    case FILTER_AVERAGE: return apply(FILTER_AVERAGE, filtered + 1, line, prior, count, bytes_per_pixel);
    case FILTER_PAETH: return apply(FILTER_PAETH, filtered + 1, line, prior, count, bytes_per_pixel);
    default: return apply(FILTER_NONE, filtered + 1, line, prior, count, bytes_per_pixel);
    }
}
