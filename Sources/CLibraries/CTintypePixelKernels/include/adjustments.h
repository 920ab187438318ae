// SPDX-License-Identifier: Apache-2.0

#ifndef CPIXELKERNELS_ADJUSTMENTS_H
#define CPIXELKERNELS_ADJUSTMENTS_H

#include <stddef.h>
#include <stdint.h>

// Operations on single pixels. They work on consecutive planes of red, green, blue and alpha, `stride` numbers apart.
// Numbers are 0 to 1, with straight alpha.

/// Converts `count` pixels of 1, 3 or 4 samples to planes. Gray fills all three colour planes, and a missing alpha
/// becomes 1.
void cpixels_to_planes(
    const uint8_t *_Nonnull samples, size_t channels, float *_Nonnull planes, size_t stride, size_t count);

/// Converts planes to pixels of 1, 3 or 4 samples, clamped and rounded. Pixels of 1 sample come from the first plane.
void cpixels_from_planes(
    const float *_Nonnull planes, size_t stride, uint8_t *_Nonnull samples, size_t channels, size_t count);

/// Multiplies the colours by a matrix of three rows, each with three factors and an offset.
void cpixels_apply_matrix(const float *_Nonnull matrix, float *_Nonnull planes, size_t stride, size_t count);

/// Raises the colours to a power above 0. Numbers below 0 become 0.
void cpixels_apply_power(float exponent, float *_Nonnull planes, size_t stride, size_t count);

/// Maps the colours of `count` pixels of 1, 3 or 4 samples by one table of 256 entries for each colour. Alpha stays the
/// same.
void cpixels_apply_tables(
    const uint8_t *_Nonnull tables, const uint8_t *_Nonnull samples, uint8_t *_Nonnull target, size_t channels,
    size_t count);

#endif
