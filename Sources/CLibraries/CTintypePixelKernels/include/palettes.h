#ifndef CPIXELKERNELS_PALETTES_H
#define CPIXELKERNELS_PALETTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Images of few colours: collecting their colours, choosing a palette, finding the nearest of its colours.
//
// A pixel is a number with red in its lowest byte, then green, blue and alpha. The functions work on one row or a few
// hundred thousand steps, so that callers can look between them whether to go on.

// Rows

/// Makes pixels of `count` samples of gray (1 channel), RGB (3) or RGB with alpha (4).
void cpixels_pack_pixels(const uint8_t *_Nonnull samples, size_t channels, uint32_t *_Nonnull pixels, size_t count);

/// Makes pixels opaque, or zero if their alpha is below `least_alpha`.
void cpixels_cut_alpha(uint32_t *_Nonnull pixels, size_t count, uint8_t least_alpha);

/// Replaces pixels that are equal to the pixels of `before` by zero.
void cpixels_keep_changes(uint32_t *_Nonnull pixels, const uint32_t *_Nonnull before, size_t count);

/// Returns whether any pixel is zero.
bool cpixels_has_zero(const uint32_t *_Nonnull pixels, size_t count);

/// The columns of a row from the first to the last one that was found; `end` is 0 if none was.
struct cpixels_columns {
    size_t start;
    size_t end;
};

/// Finds the columns in which two rows differ.
struct cpixels_columns cpixels_find_changes(
    const uint32_t *_Nonnull first, const uint32_t *_Nonnull second, size_t count);

/// Finds the columns in which `first` is not zero and `second` is.
struct cpixels_columns cpixels_find_cleared(
    const uint32_t *_Nonnull first, const uint32_t *_Nonnull second, size_t count);

// The distinct colours of an image

/// The most colours of a set.
#define cpixels_most_colors 256
/// The places of a hash table that holds the indices of a set's colours; -1 is a free place.
#define cpixels_color_places 1024

/// Adds the colours of pixels to a set; returns whether there was room for all.
///
/// - colors: `cpixels_most_colors`, in the order in which they were met.
/// - color_count: the colours of the palette.
/// - places: `cpixels_color_places`.
/// - skips_zero: whether pixels that are zero are left out.
bool cpixels_collect_colors(
    const uint32_t *_Nonnull pixels, size_t count, bool skips_zero, uint32_t *_Nonnull colors,
    size_t *_Nonnull color_count, int16_t *_Nonnull places);

/// Writes the index of each pixel's colour; `missing` for colours that are not in the set.
void cpixels_index_colors(
    const uint32_t *_Nonnull pixels, size_t count, const uint32_t *_Nonnull colors, const int16_t *_Nonnull places,
    uint8_t missing, uint8_t *_Nonnull indices);

// Choosing a palette

/// The cells of colour space: 32 for each of red, green and blue, blue innermost.
#define cpixels_cell_count 32768
/// The sums over cells from the first one, with an empty one before each side.
#define cpixels_sum_count 35937

/// The pixels of a cell: the sums of their channels, their number, and the sum of the squares of all three.
struct cpixels_cell {
    int64_t red, green, blue, count, squares;
};

/// Adds pixels to their cells, except pixels that are zero.
void cpixels_count_pixels(struct cpixels_cell *_Nonnull cells, const uint32_t *_Nonnull pixels, size_t count);

/// Cuts colour space into at most `maximum` boxes, always the one with the largest squared error; returns their number.
///
/// - sums: `cpixels_sum_count`, all zero.
/// - maximum: 1 to 256.
/// - colors: the means of the boxes, which are opaque.
size_t cpixels_cut_boxes(
    const struct cpixels_cell *_Nonnull cells, struct cpixels_cell *_Nonnull sums, size_t maximum,
    uint32_t *_Nonnull colors);

/// Moves each colour to the mean of the cells that are nearest to it; returns whether any colour changed.
bool cpixels_move_colors(const struct cpixels_cell *_Nonnull cells, uint32_t *_Nonnull colors, size_t count);

/// Returns the mean squared distance of the pixels from the nearest colour, as far as the cells tell.
double cpixels_palette_error(const struct cpixels_cell *_Nonnull cells, const uint32_t *_Nonnull colors, size_t count);

// Mapping pixels to a palette

/// The colours whose nearest one was found before.
#define cpixels_cached_colors 16384

/// A palette to search in; large, so it lies on the heap.
struct cpixels_palette;

/// The bytes of a palette to search in.
size_t cpixels_palette_size(void);

/// Prepares a search in 1 to 256 colours, in `cpixels_palette_size()` bytes at a multiple of 64.
void cpixels_palette_prepare(struct cpixels_palette *_Nonnull palette, const uint32_t *_Nonnull colors, size_t count);

/// Writes the index of the nearest colour of each pixel, and `transparent` for pixels that are zero.
void cpixels_map_row(
    struct cpixels_palette *_Nonnull palette, const uint32_t *_Nonnull pixels, size_t count, uint8_t transparent,
    uint8_t *_Nonnull indices);

/// Does the same with the error of each pixel spread over the next ones, as Floyd and Steinberg do.
///
/// - is_reversed: whether the row is read from its end.
/// - errors: of this row, 4 for each of `count + 2` pixels, in sixteenths of a level.
/// - next_errors: the errors of the next row, which this function sets.
void cpixels_dither_row(
    struct cpixels_palette *_Nonnull palette, const uint32_t *_Nonnull pixels, size_t count, uint8_t transparent,
    bool is_reversed, const int32_t *_Nonnull errors, int32_t *_Nonnull next_errors, uint8_t *_Nonnull indices);

#endif
