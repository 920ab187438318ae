// SPDX-License-Identifier: Apache-2.0

#include "reader.h"

enum {
    /// The most bytes that one pixel or copy takes, including the bits that a reader loads in advance.
    MOST_BYTES_AT_ONCE = 24,
    FIRST_LENGTH = 256,
    FIRST_CACHED = 256 + 24,
    SHORT_DISTANCES = 120,
};

/// The offsets of short distance codes.
///
/// The upper four bits are the rows above, and the lower four are 8 minus the columns to the left.
static const uint8_t nearby[SHORT_DISTANCES] = {
    0x18, 0x07, 0x17, 0x19, 0x28, 0x06, 0x27, 0x29, 0x16, 0x1a, 0x26, 0x2a, 0x38, 0x05, 0x37, 0x39, 0x15, 0x1b,
    0x36, 0x3a, 0x25, 0x2b, 0x48, 0x04, 0x47, 0x49, 0x14, 0x1c, 0x35, 0x3b, 0x46, 0x4a, 0x24, 0x2c, 0x58, 0x45,
    0x4b, 0x34, 0x3c, 0x03, 0x57, 0x59, 0x13, 0x1d, 0x56, 0x5a, 0x23, 0x2d, 0x44, 0x4c, 0x55, 0x5b, 0x33, 0x3d,
    0x68, 0x02, 0x67, 0x69, 0x12, 0x1e, 0x66, 0x6a, 0x22, 0x2e, 0x54, 0x5c, 0x43, 0x4d, 0x65, 0x6b, 0x32, 0x3e,
    0x78, 0x01, 0x77, 0x79, 0x53, 0x5d, 0x11, 0x1f, 0x64, 0x6c, 0x42, 0x4e, 0x76, 0x7a, 0x21, 0x2f, 0x75, 0x7b,
    0x31, 0x3f, 0x63, 0x6d, 0x52, 0x5e, 0x00, 0x74, 0x7c, 0x41, 0x4f, 0x10, 0x20, 0x62, 0x6e, 0x30, 0x73, 0x7d,
    0x51, 0x5f, 0x40, 0x72, 0x7e, 0x61, 0x6f, 0x50, 0x71, 0x7f, 0x60, 0x70,
};

/// Returns the length or distance given by a prefix and the bits behind it.
INLINE size_t read_number(struct reader *reader, uint32_t prefix) {
    if (prefix < 4) return prefix + 1;
    uint32_t extra = (prefix - 2) >> 1;
    size_t number = ((size_t)(2 + (prefix & 1)) << extra) + (reader->bits & ((1ull << extra) - 1)) + 1;
    skip(reader, extra);
    return number;
}

INLINE size_t distance(size_t code, size_t width) {
    if (code > SHORT_DISTANCES) return code - SHORT_DISTANCES;
    size_t place = nearby[code - 1];
    size_t rows = (place >> 4) * width + 8, columns = place & 0xF;
    return rows > columns ? rows - columns : 1;
}

/// Copies pixels from `distance` earlier. The source may overlap the target.
INLINE void copy(uint32_t *target, size_t distance, size_t count) {
    const uint32_t *source = target - distance;
    if (distance == 1) {
        uint32_t pixel = *source;
        for (size_t index = 0; index < count; index++) target[index] = pixel;
    } else if (distance >= count) {
        memcpy(target, source, count * sizeof(uint32_t));
    } else {
        for (size_t index = 0; index < count; index++) target[index] = source[index];
    }
}

/// Returns the colour at `index` of the cache, after all pixels up to `position` have entered it.
INLINE uint32_t cached(struct cvp8l_pixels *image, uint32_t index, size_t position) {
    uint32_t *cache = image->cache;
    uint32_t shift = 32 - image->cache_bits;
    for (size_t next = image->cached_count; next < position; next++) {
        uint32_t pixel = image->pixels[next];
        cache[(pixel * 0x1E35A7BDu) >> shift] = pixel;
    }
    image->cached_count = position;
    return cache[index];
}

enum cvp8l_status cvp8l_decode(
    struct cvp8l_pixels *image, size_t end, const uint8_t *bytes, size_t byte_count, size_t *bit_offset) {
    struct reader reader = begin_reading(bytes, byte_count, *bit_offset);
    size_t width = image->width, last = width * image->height, position = image->count;
    size_t column = position % width, row = position / width;
    size_t tiles_per_row = (width + ((size_t)1 << image->tile_bits) - 1) >> image->tile_bits;
    uint32_t *pixels = image->pixels;
    const uint32_t *entries = image->entries;
    struct reader before = reader;
    enum cvp8l_status status = cvp8l_is_done;

    while (position < end) {
        // All pixels up to the end of a tile, or of the row, have the same codes.
        size_t stretch_end = width;
        const struct cvp8l_group *group = image->groups;
        if (image->tiles) {
            size_t tile = column >> image->tile_bits;
            size_t tile_end = (tile + 1) << image->tile_bits;
            if (tile_end < width) stretch_end = tile_end;
            group += image->tiles[(row >> image->tile_bits) * tiles_per_row + tile];
        }
        const struct cvp8l_group codes = *group;
        if (codes.is_only_pixel) {
            for (; column < stretch_end; column++) pixels[position++] = codes.only_pixel;
        }
        while (column < stretch_end) {
            // If bytes may run out, remember the position, to undo an incomplete pixel.
            bool may_run_out = reader.count - reader.offset < MOST_BYTES_AT_ONCE;
            if (may_run_out) before = reader;
            refill(&reader);
            uint32_t green = read_symbol(&reader, codes.green, entries), pixel = 0;
            size_t length = 0, back = 0;
            if (green < FIRST_LENGTH) {
                pixel = codes.other_channels | green << 8;
                if (!codes.is_only_green) {
                    uint32_t red = read_symbol(&reader, codes.red, entries);
                    refill(&reader);
                    uint32_t blue = read_symbol(&reader, codes.blue, entries);
                    uint32_t alpha = read_symbol(&reader, codes.alpha, entries);
                    pixel |= alpha << 24 | red << 16 | blue;
                }
            } else if (green >= FIRST_CACHED) {
                pixel = cached(image, green - FIRST_CACHED, position);
            } else {
                length = read_number(&reader, green - FIRST_LENGTH);
                refill(&reader);
                uint32_t code = read_symbol(&reader, codes.distance, entries);
                back = distance(read_number(&reader, code), width);
            }
            if (may_run_out && is_exhausted(&reader)) {
                reader = before;
                status = cvp8l_needs_bytes;
                goto done;
            }
            if (length == 0) {
                pixels[position++] = pixel;
                column += 1;
                continue;
            }
            if (back > position || length > last - position) {
                status = cvp8l_is_damaged;
                goto done;
            }
            copy(pixels + position, back, length);
            position += length;
            column += length;
        }
        // A copy may end rows below.
        if (column >= width) {
            row += column / width;
            column %= width;
        }
    }
done:
    image->count = position;
    *bit_offset = bit_offset_of(&reader);
    return status;
}
