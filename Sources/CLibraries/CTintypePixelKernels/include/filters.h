// SPDX-License-Identifier: Apache-2.0

#ifndef CPIXELKERNELS_FILTERS_H
#define CPIXELKERNELS_FILTERS_H

#include <stddef.h>
#include <stdint.h>

// Filters for rows of numbers, 0 to 255. Colours are premultiplied if there is alpha. All rows have room for a multiple
// of CPIXELS_ROW_STEP numbers. Kernels process whole steps, so the numbers after the last sample are undefined.

#define CPIXELS_ROW_STEP 128

/// Computes each of `target_count` rows as a weighted sum of `row_count` rows.
///
/// `weights` holds all weights of the first target, then of the next. If `adds` is set, the sums are added to the
/// targets.
void cpixels_combine_rows(
    const float *_Nonnull const *_Nonnull rows, size_t row_count, const float *_Nonnull weights,
    float *_Nonnull const *_Nonnull targets, size_t target_count, int adds, size_t count);

/// Computes each number as a weighted sum of its neighbours, which are `step` numbers apart. `weights` holds the weight
/// of the number itself and then of each pair of neighbours. `row` has `radius` times `step` more numbers at each end.
void cpixels_convolve_row(
    const float *_Nonnull row, const float *_Nonnull weights, size_t radius, size_t step, float *_Nonnull target,
    size_t count);

/// Converts `count` pixels of 1, 3 or 4 samples to numbers, premultiplied if there are 4.
///
/// `light` maps each sample to its light. Without it, the numbers are the samples themselves.
void cpixels_load_samples(
    const uint8_t *_Nonnull samples, size_t channels, const float *_Nullable light, float *_Nonnull numbers,
    size_t count);

/// Converts numbers to `count` pixels of 1, 3 or 4 samples, divided by alpha if there is alpha, clamped and rounded.
///
/// `samples_of_light` maps 65,536 steps of light to samples. If alpha rounds to 0, all samples of the pixel are 0.
void cpixels_store_samples(
    const float *_Nonnull numbers, const uint8_t *_Nullable samples_of_light, uint8_t *_Nonnull samples,
    size_t channels, size_t count);

// The same filters with integers of 16 bits, for sums of few rows. They are twice as fast. They truncate each product,
// by at most 1/255 of a level. A level is 255, so that the product of a colour and its alpha is exact. The unit of
// weights is 1/65536.

/// See `cpixels_combine_rows`.
void cpixels_combine_words(
    const uint16_t *_Nonnull const *_Nonnull rows, size_t row_count, const uint16_t *_Nonnull weights,
    uint16_t *_Nonnull const *_Nonnull targets, size_t target_count, int adds, size_t count);

/// See `cpixels_convolve_row`. The neighbours' weights are doubled, because each applies to the mean of two neighbours.
void cpixels_convolve_words(
    const uint16_t *_Nonnull row, const uint16_t *_Nonnull weights, size_t radius, size_t step,
    uint16_t *_Nonnull target, size_t count);

/// See `cpixels_load_samples`.
void cpixels_load_words(const uint8_t *_Nonnull samples, size_t channels, uint16_t *_Nonnull numbers, size_t count);

/// See `cpixels_store_samples`. Corrects the average loss from truncated products.
void cpixels_store_words(const uint16_t *_Nonnull numbers, uint8_t *_Nonnull samples, size_t channels, size_t count);

/// Adds a row of numbers, multiplied by a weight, to sums.
void cpixels_add_row(const float *_Nonnull row, double weight, double *_Nonnull sums, size_t count);

/// Computes each of `width` pixels of 1, 3 or 4 numbers as the sum of the pixels within `radius` on both sides,
/// multiplied by `scale`. Beyond its ends, the row repeats its first and last pixel.
void cpixels_box_row(
    const double *_Nonnull sums, size_t radius, size_t channels, double scale, float *_Nonnull target, size_t width);

/// Computes the luma of `count` pixels of 3 or 4 samples. With 4 samples, luma is premultiplied and followed by alpha.
///
/// Source: ITU-R BT.709.
void cpixels_load_luma(const uint8_t *_Nonnull samples, size_t channels, float *_Nonnull numbers, size_t count);

/// Moves the samples of `count` pixels away from blurred ones by `amount` times their difference, if that difference is
/// at least `threshold`. `blurred` has the format of `cpixels_load_samples`. Alpha stays the same.
void cpixels_sharpen_samples(
    const uint8_t *_Nonnull samples, const float *_Nonnull blurred, size_t channels, float amount, float threshold,
    uint8_t *_Nonnull target, size_t count);

/// Sharpens the colours of a pixel together, by its luma. `blurred` has the format of `cpixels_load_luma`.
void cpixels_sharpen_luma(
    const uint8_t *_Nonnull samples, const float *_Nonnull blurred, size_t channels, float amount, float threshold,
    uint8_t *_Nonnull target, size_t count);

/// Computes each of `width` pixels of 1, 3 or 4 numbers as the mean of its block of `size` pixels. `sums` holds sums of
/// `rows` rows.
void cpixels_average_blocks(
    const double *_Nonnull sums, size_t size, size_t rows, size_t channels, float *_Nonnull target, size_t width);

#endif
