#ifndef CPIXELKERNELS_GEOMETRY_H
#define CPIXELKERNELS_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

/// Writes `count` pixels of one colour, of whose samples the target has 1, 3 or 4.
void cpixels_fill(uint8_t *_Nonnull target, const uint8_t *_Nonnull color, size_t channels, size_t count);

/// Writes pixels with another number of samples: gray becomes a colour, what had no alpha opaque, and what the target
/// has no sample for is left out. Pixels that become gray must be gray.
void cpixels_convert(
    const uint8_t *_Nonnull source, size_t source_channels, uint8_t *_Nonnull target, size_t channels, size_t count);

/// Writes the pixels of a row from the last to the first.
void cpixels_mirror(const uint8_t *_Nonnull source, uint8_t *_Nonnull target, size_t channels, size_t count);

/// Writes the rows of a target of `columns` by `rows` pixels, each of which is a column of the source.
///
/// Strides are the ways from a row to the next in bytes; rows that are written or read from the last one on have
/// negative ones. The source and target must not overlap.
void cpixels_transpose(
    const uint8_t *_Nonnull source, ptrdiff_t source_stride, uint8_t *_Nonnull target, ptrdiff_t target_stride,
    size_t channels, size_t columns, size_t rows);

/// Copies `rows` rows of `count` bytes.
///
/// With `passes_cache` they go to memory directly if that is faster: for targets larger than what a cache keeps.
/// Such a target and its stride are multiples of 64.
void cpixels_copy_rows(
    const uint8_t *_Nonnull source, size_t source_stride, uint8_t *_Nonnull target, size_t target_stride, size_t count,
    size_t rows, int passes_cache);

/// The colour that pixels are compared with.
typedef struct {
    /// Red, green and blue times alpha, and alpha times 255.
    int32_t color[4];
    /// How far a premultiplied sample may be away, from 0 to 255.
    int32_t tolerance;
} cpixels_likeness;

/// The first pixel of a row that is not like a colour; `count` without one.
size_t cpixels_first_unlike(
    const uint8_t *_Nonnull pixels, size_t channels, size_t count, const cpixels_likeness *_Nonnull likeness);

/// The end of the last pixel that is not like a colour; 0 without one.
size_t cpixels_end_of_unlike(
    const uint8_t *_Nonnull pixels, size_t channels, size_t count, const cpixels_likeness *_Nonnull likeness);

/// The bits behind the point of coordinates in `cpixels_rotation`.
#define CPIXELS_ROTATION_BITS 30

/// An image that is turned by any angle: what all rows of the target have in common.
///
/// Coordinates are in pixels of the source, in fixed point. The middle of its first pixel is at a half.
typedef struct {
    /// The source: gray, RGB or RGB with straight alpha.
    const uint8_t *_Nonnull pixels;
    size_t bytes_per_row;
    int32_t width;
    int32_t height;
    /// 1, 3 or 4 samples a pixel; the target has no fewer if the source has alpha.
    int32_t channels;
    int32_t target_channels;
    /// How far one target column further is in the source.
    int64_t column_step;
    int64_t row_step;
    /// The colour beside the image, with straight alpha.
    uint8_t background[4];
} cpixels_rotation;

// Each writes `count` pixels of a row, of which the middle of the first one is at `column`, `row` of the source.
//
// Up to half a pixel beyond the image the samples of its border count; across that pixel the image gives way to the
// background, evenly. Nearest pixels are taken as they are, up to the border.

void cpixels_rotate_nearest(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);
void cpixels_rotate_bilinear(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);

/// With the cubic of Catmull and Rom.
void cpixels_rotate_bicubic(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);

#endif
