// SPDX-License-Identifier: Apache-2.0

#ifndef CPIXELKERNELS_PALETTES_H
#define CPIXELKERNELS_PALETTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Functions for images of few colours. They collect colours, choose a palette, and find the nearest palette colour.
//
// A pixel is a number with red in its lowest byte, then green, blue and alpha. Each call processes one row or a few
// hundred thousand steps, so that callers can check for cancellation between calls.

// Rows

/// Converts `count` pixels of gray (1 channel), RGB (3) or RGB with alpha (4).
void cpixels_pack_pixels(const uint8_t *_Nonnull samples, size_t channels, uint32_t *_Nonnull pixels, size_t count);

/// Makes pixels opaque, or zero if their alpha is below `least_alpha`.
void cpixels_cut_alpha(uint32_t *_Nonnull pixels, size_t count, uint8_t least_alpha);

/// Sets pixels to zero that are equal to the pixels of `before`.
void cpixels_keep_changes(uint32_t *_Nonnull pixels, const uint32_t *_Nonnull before, size_t count);

/// Returns whether any pixel is zero.
bool cpixels_has_zero(const uint32_t *_Nonnull pixels, size_t count);

/// The range of columns in a row that a search found. `end` is 0 if it found no column.
struct cpixels_columns {
    size_t start;
    size_t end;
};

/// Finds the range of columns in which two rows differ.
struct cpixels_columns cpixels_find_changes(
    const uint32_t *_Nonnull first, const uint32_t *_Nonnull second, size_t count);

/// Finds the range of columns in which `first` is not zero and `second` is zero.
struct cpixels_columns cpixels_find_cleared(
    const uint32_t *_Nonnull first, const uint32_t *_Nonnull second, size_t count);

// The distinct colours of an image

/// The maximum number of colours in a set.
#define cpixels_most_colors 256
/// The number of slots of a hash table with the indices of a set's colours. -1 marks a free slot.
#define cpixels_color_places 1024

/// Adds the colours of pixels to a set. Returns whether the set had room for all of them.
///
/// - colors: `cpixels_most_colors` entries, in the order in which the colours first occur.
/// - color_count: the number of colours in the set.
/// - places: `cpixels_color_places` slots.
/// - skips_zero: whether to skip pixels that are zero.
bool cpixels_collect_colors(
    const uint32_t *_Nonnull pixels, size_t count, bool skips_zero, uint32_t *_Nonnull colors,
    size_t *_Nonnull color_count, int16_t *_Nonnull places);

/// Writes the index of each pixel's colour, or `missing` if the colour is not in the set.
void cpixels_index_colors(
    const uint32_t *_Nonnull pixels, size_t count, const uint32_t *_Nonnull colors, const int16_t *_Nonnull places,
    uint8_t missing, uint8_t *_Nonnull indices);

// Choosing a palette

/// The number of cells of colour space: 32 steps each of red, green and blue, with blue innermost.
#define cpixels_cell_count 32768
/// The number of cumulative sums over cells, with an extra zero at the start of each axis.
#define cpixels_sum_count 35937

/// The pixels of a cell: the sums of their channels, their number, and the sum of the squares of all channels.
struct cpixels_cell {
    int64_t red, green, blue, count, squares;
};

/// Adds pixels to their cells. Skips pixels that are zero.
void cpixels_count_pixels(struct cpixels_cell *_Nonnull cells, const uint32_t *_Nonnull pixels, size_t count);

/// Divides colour space into at most `maximum` boxes. Each step cuts the box with the largest squared error. Returns
/// the number of boxes.
///
/// - sums: `cpixels_sum_count` cells, all zero.
/// - maximum: 1 to 256.
/// - colors: the means of the boxes, all opaque.
size_t cpixels_cut_boxes(
    const struct cpixels_cell *_Nonnull cells, struct cpixels_cell *_Nonnull sums, size_t maximum,
    uint32_t *_Nonnull colors);

/// Moves each colour to the mean of its nearest cells. Returns whether any colour changed.
bool cpixels_move_colors(const struct cpixels_cell *_Nonnull cells, uint32_t *_Nonnull colors, size_t count);

/// Returns the mean squared distance of the pixels from their nearest colours, computed from the cells.
double cpixels_palette_error(const struct cpixels_cell *_Nonnull cells, const uint32_t *_Nonnull colors, size_t count);

// Mapping pixels to a palette

/// The number of colours whose nearest palette colour is cached.
#define cpixels_cached_colors 16384

/// A palette to search in. It is large, so allocate it on the heap.
struct cpixels_palette;

/// Returns the size of a palette in bytes.
size_t cpixels_palette_size(void);

/// Prepares a search in 1 to 256 colours. `palette` has `cpixels_palette_size()` bytes, at a multiple of 64.
void cpixels_palette_prepare(struct cpixels_palette *_Nonnull palette, const uint32_t *_Nonnull colors, size_t count);

/// Writes the index of the nearest colour of each pixel, or `transparent` for pixels that are zero.
void cpixels_map_row(
    struct cpixels_palette *_Nonnull palette, const uint32_t *_Nonnull pixels, size_t count, uint8_t transparent,
    uint8_t *_Nonnull indices);

/// Like `cpixels_map_row`, but spreads the error of each pixel over the next ones (Floyd-Steinberg dithering).
///
/// - is_reversed: whether to process the row from its end.
/// - errors: the errors of this row, 4 for each of `count + 2` pixels, in sixteenths of a level.
/// - next_errors: the errors of the next row, which this function sets.
void cpixels_dither_row(
    struct cpixels_palette *_Nonnull palette, const uint32_t *_Nonnull pixels, size_t count, uint8_t transparent,
    bool is_reversed, const int32_t *_Nonnull errors, int32_t *_Nonnull next_errors, uint8_t *_Nonnull indices);

#endif
