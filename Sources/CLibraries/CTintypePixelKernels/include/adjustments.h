#ifndef CPIXELKERNELS_ADJUSTMENTS_H
#define CPIXELKERNELS_ADJUSTMENTS_H

#include <stddef.h>
#include <stdint.h>

// Operations on pixels that look at no other pixel. They work on planes: red, green, blue and alpha one behind another,
// `stride` numbers apart, 0 to 1 each, with straight alpha.

/// Makes planes of `count` pixels of 1, 3 or 4 samples; gray stands in all three colours, and no alpha means 1.
void cpixels_to_planes(
    const uint8_t *_Nonnull samples, size_t channels, float *_Nonnull planes, size_t stride, size_t count);

/// Makes pixels of 1, 3 or 4 samples of planes, cut to the range and rounded; of 1 sample they are the first plane.
void cpixels_from_planes(
    const float *_Nonnull planes, size_t stride, uint8_t *_Nonnull samples, size_t channels, size_t count);

/// Replaces the colours by sums of them: three rows of three factors and what is added.
void cpixels_apply_matrix(const float *_Nonnull matrix, float *_Nonnull planes, size_t stride, size_t count);

/// Raises the colours to a power over 0; numbers below 0 become 0.
void cpixels_apply_power(float exponent, float *_Nonnull planes, size_t stride, size_t count);

/// Looks the colours of `count` pixels of 1, 3 or 4 samples up in a table of 256 for each; alpha stays.
void cpixels_apply_tables(
    const uint8_t *_Nonnull tables, const uint8_t *_Nonnull samples, uint8_t *_Nonnull target, size_t channels,
    size_t count);

#endif
