// SPDX-License-Identifier: Apache-2.0

#ifndef CPIXELKERNELS_GEOMETRY_H
#define CPIXELKERNELS_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

/// Fills `count` pixels of 1, 3 or 4 samples with one colour.
void cpixels_fill(uint8_t *_Nonnull target, const uint8_t *_Nonnull color, size_t channels, size_t count);

/// Converts pixels to another number of samples. Gray becomes a colour, missing alpha becomes opaque, and extra samples
/// are dropped. Pixels that become gray must be gray already.
void cpixels_convert(
    const uint8_t *_Nonnull source, size_t source_channels, uint8_t *_Nonnull target, size_t channels, size_t count);

/// Writes the pixels of a row from the last to the first.
void cpixels_mirror(const uint8_t *_Nonnull source, uint8_t *_Nonnull target, size_t channels, size_t count);

/// Transposes pixels to a target of `columns` by `rows` pixels. Each row of the target is a column of the source.
///
/// Strides are distances between rows in bytes. They are negative for rows in reverse order. The source and target must
/// not overlap.
void cpixels_transpose(
    const uint8_t *_Nonnull source, ptrdiff_t source_stride, uint8_t *_Nonnull target, ptrdiff_t target_stride,
    size_t channels, size_t columns, size_t rows);

/// Copies `rows` rows of `count` bytes.
///
/// If `passes_cache` is set, the function bypasses the cache if that is faster. Set it for targets that are larger than
/// a cache. The target and its stride are then multiples of 64.
void cpixels_copy_rows(
    const uint8_t *_Nonnull source, size_t source_stride, uint8_t *_Nonnull target, size_t target_stride, size_t count,
    size_t rows, int passes_cache);

/// A colour to compare pixels with.
typedef struct {
    /// Red, green and blue times alpha, and alpha times 255.
    int32_t color[4];
    /// The maximum difference of a premultiplied sample, 0 to 255.
    int32_t tolerance;
} cpixels_likeness;

/// Returns the index of the first pixel that differs from a colour, or `count` if all match.
size_t cpixels_first_unlike(
    const uint8_t *_Nonnull pixels, size_t channels, size_t count, const cpixels_likeness *_Nonnull likeness);

/// Returns the index behind the last pixel that differs from a colour, or 0 if all match.
size_t cpixels_end_of_unlike(
    const uint8_t *_Nonnull pixels, size_t channels, size_t count, const cpixels_likeness *_Nonnull likeness);

/// The number of fraction bits in the coordinates of `cpixels_rotation`.
#define CPIXELS_ROTATION_BITS 30

/// The parameters of a rotation by any angle, which all rows of the target share.
///
/// Coordinates are source pixels in fixed point. The centre of the first pixel is at one half.
typedef struct {
    /// The source: gray, RGB or RGB with straight alpha.
    const uint8_t *_Nonnull pixels;
    size_t bytes_per_row;
    int32_t width;
    int32_t height;
    /// 1, 3 or 4 samples per pixel. If the source has alpha, the target has at least as many samples.
    int32_t channels;
    int32_t target_channels;
    /// The source distance between adjacent target columns.
    int64_t column_step;
    int64_t row_step;
    /// The colour outside the image, with straight alpha.
    uint8_t background[4];
} cpixels_rotation;

// Each function writes `count` pixels of a row. The centre of the first pixel is at `column`, `row` of the source.
//
// Up to half a pixel outside the image, the samples of its border apply. Within one pixel across the border, the image
// blends linearly into the background. The nearest-pixel function does not blend.

void cpixels_rotate_nearest(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);
void cpixels_rotate_bilinear(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);

/// Uses the Catmull-Rom cubic.
void cpixels_rotate_bicubic(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);

#endif
