#ifndef CPIXELKERNELS_GEOMETRY_H
#define CPIXELKERNELS_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

/// Writes `count` pixels of one colour, of whose samples the target has 1, 3 or 4.
void cpixels_fill(uint8_t *_Nonnull target, const uint8_t *_Nonnull color, size_t channels, size_t count);

/// Writes pixels as ones with as many samples or more: gray becomes a colour, and what has no alpha opaque.
void cpixels_convert(
    const uint8_t *_Nonnull source, size_t source_channels, uint8_t *_Nonnull target, size_t channels, size_t count);

/// The bits behind the point of coordinates in `cpixels_rotation`.
#define CPIXELS_ROTATION_BITS 30

/// A picture that is turned by any angle: what all rows of the target have in common.
///
/// Coordinates are those of the source in pixels, in fixed point. The middle of its first pixel is at a half.
typedef struct {
    /// The source: gray, RGB or RGB with straight alpha.
    const uint8_t *_Nonnull pixels;
    size_t bytes_per_row;
    int32_t width;
    int32_t height;
    /// 1, 3 or 4 samples a pixel; those of the target are no fewer where the source has alpha.
    int32_t channels;
    int32_t target_channels;
    /// How far one target column further is in the source.
    int64_t column_step;
    int64_t row_step;
    /// What is beside the picture, with straight alpha.
    uint8_t background[4];
} cpixels_rotation;

// Each writes `count` pixels of a row, of which the middle of the first one is at `column`, `row` of the source.
//
// Up to half a pixel beyond the picture the samples of its border count; across that pixel the picture gives way to the
// background, evenly. Nearest pixels are taken as they are, up to the border.

void cpixels_rotate_nearest(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);
void cpixels_rotate_bilinear(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);

/// With the cubic of Catmull and Rom.
void cpixels_rotate_bicubic(
    const cpixels_rotation *_Nonnull rotation, int64_t column, int64_t row, uint8_t *_Nonnull target, size_t count);

#endif
