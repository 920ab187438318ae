// SPDX-License-Identifier: Apache-2.0

#ifndef CVP8L_H
#define CVP8L_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The loops over the pixels and the prefix codes of VP8L (RFC 9649, section 3), which lossless WebP files contain. They
// are in C because a Swift debug build would be tens of times slower. The caller owns all memory. A pixel has alpha in
// the highest byte, then red, green and blue. Functions that read a stream start at `*bit_offset`, and advance it.

/// The reason why reading stopped.
enum cvp8l_status {
    cvp8l_is_done,
    /// The stream has no more bytes.
    cvp8l_needs_bytes,
    /// The stream breaks the format.
    cvp8l_is_damaged,
};

// Prefix codes

/// The place of a prefix code's table in the block of tables, or its only symbol.
struct cvp8l_code {
    /// The first entry of the table, or the symbol.
    uint32_t start;
    /// The number of bits that index the first table: 0 for a code of one symbol.
    uint32_t root_bits;
};

/// The most symbols of a code: the values of a byte, the lengths, and the places of a cache of 11 bits.
#define cvp8l_most_symbols (256 + 24 + 2048)
/// The most entries of a code's tables (by zlib's `enough`, for 2,328 symbols, and 8 of at most 15 bits).
#define cvp8l_most_entries 2704

/// Reads a code of `symbol_count` symbols, and builds its tables.
///
/// An entry has the length of its code in the lowest byte and the symbol in the upper half. An entry that leads to a
/// second table has bit 7 set, the number of bits of that table, and its distance from the first one.
///
/// - entries: memory for `cvp8l_most_entries` entries.
/// - entry_count: receives the number of entries, which is 0 for a code of one symbol.
/// - code: receives the code, with a start of 0 if there are entries.
enum cvp8l_status cvp8l_read_code(
    size_t symbol_count, const uint8_t *_Nullable bytes, size_t byte_count, size_t *_Nonnull bit_offset,
    uint32_t *_Nonnull entries, size_t *_Nonnull entry_count, struct cvp8l_code *_Nonnull code);

// Pixels

/// The codes of one group of pixels.
struct cvp8l_group {
    struct cvp8l_code green, red, blue, alpha, distance;
    /// The only pixel that the group can code, if its codes take no bits.
    uint32_t only_pixel;
    /// The values of red, blue and alpha if they take no bits, with a green of 0; otherwise 0.
    uint32_t other_channels;
    bool is_only_pixel;
    /// Whether red, blue and alpha take no bits.
    bool is_only_green;
};

/// The pixels of an entropy-coded image, and everything that decodes them.
struct cvp8l_pixels {
    size_t width, height;
    /// Memory for all pixels, of which the first `count` are decoded.
    uint32_t *_Nonnull pixels;
    size_t count;
    /// The tables of all codes.
    const uint32_t *_Nullable entries;
    const struct cvp8l_group *_Nonnull groups;
    /// The group of each tile, or NULL if one group codes all pixels.
    const uint16_t *_Nullable tiles;
    /// The side of a tile, as a power of two.
    uint32_t tile_bits;
    /// The size of the cache of colours as a power of two; 0 without a cache.
    uint32_t cache_bits;
    uint32_t *_Nullable cache;
    /// The number of pixels that are in the cache already.
    size_t cached_count;
};

/// Decodes until at least `end` pixels are decoded. A copy may decode more.
///
/// If bytes or copies are wrong or missing, all earlier pixels are decoded.
enum cvp8l_status cvp8l_decode(
    struct cvp8l_pixels *_Nonnull pixels, size_t end, const uint8_t *_Nullable bytes, size_t byte_count,
    size_t *_Nonnull bit_offset);

// Transforms, which are undone row by row

/// Undoes the prediction of row `row` by its neighbours.
///
/// - above: the previous row of output, and room for one more pixel. Becomes the new row.
/// - modes: a pixel for each tile, whose green selects the prediction.
/// - size_bits: the side of a tile, as a power of two.
void cvp8l_add_prediction(
    uint32_t *_Nonnull pixels, uint32_t *_Nonnull above, size_t width, size_t row, const uint32_t *_Nonnull modes,
    uint32_t size_bits);

/// Adds fractions of green and red to red and blue.
///
/// - factors: a pixel for each tile, with the fractions.
/// - size_bits: the side of a tile, as a power of two.
void cvp8l_add_colors(
    uint32_t *_Nonnull pixels, size_t width, size_t row, const uint32_t *_Nonnull factors, uint32_t size_bits);

/// Adds green to red and blue.
void cvp8l_add_green(uint32_t *_Nonnull pixels, size_t width);

/// Replaces indices by colours, from coded pixels with `1 << size_bits` indices each.
///
/// - colors: a colour for each value that an index can have.
void cvp8l_look_up(uint32_t *_Nonnull pixels, size_t width, const uint32_t *_Nonnull colors, uint32_t size_bits);

// Output

/// Writes `count` pixels as bytes of red, green, blue and, if `has_alpha`, alpha.
///
/// - is_opaque: whether to write an alpha of 255.
void cvp8l_write(
    const uint32_t *_Nonnull pixels, size_t count, uint8_t *_Nonnull target, bool has_alpha, bool is_opaque);

#endif
