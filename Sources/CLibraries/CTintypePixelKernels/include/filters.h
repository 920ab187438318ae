#ifndef CPIXELKERNELS_FILTERS_H
#define CPIXELKERNELS_FILTERS_H

#include <stddef.h>
#include <stdint.h>

// Rows of numbers, 0 to 255, whose colours are premultiplied where there is alpha. All of them have room for a multiple
// of CPIXELS_ROW_STEP numbers, and kernels work on that many: what is behind the last sample is undefined.

#define CPIXELS_ROW_STEP 128

/// Makes sums of rows: each of `target_count` rows is the sum of `row_count` rows, times their weights.
///
/// `weights` has those of the first target first. With `adds` the sums are added to what the targets hold.
void cpixels_combine_rows(
    const float *_Nonnull const *_Nonnull rows, size_t row_count, const float *_Nonnull weights,
    float *_Nonnull const *_Nonnull targets, size_t target_count, int adds, size_t count);

/// Makes each number the sum of those around it: `weights` are that of the number itself and of those to both sides,
/// `step` numbers apart. `row` has `radius` times `step` numbers before its first and behind its last.
void cpixels_convolve_row(
    const float *_Nonnull row, const float *_Nonnull weights, size_t radius, size_t step, float *_Nonnull target,
    size_t count);

/// Makes numbers of `count` pixels of 1, 3 or 4 samples, premultiplied if there are 4.
///
/// `light` has the number of each sample's light; without it samples stand for themselves.
void cpixels_load_samples(
    const uint8_t *_Nonnull samples, size_t channels, const float *_Nullable light, float *_Nonnull numbers,
    size_t count);

/// Makes `count` pixels of 1, 3 or 4 samples of numbers, divided by alpha where there is one, cut to the range and
/// rounded.
///
/// `samples_of_light` has the samples of 65,536 steps of light. A pixel whose alpha rounds to 0 has no colour: all its
/// samples are 0.
void cpixels_store_samples(
    const float *_Nonnull numbers, const uint8_t *_Nullable samples_of_light, uint8_t *_Nonnull samples,
    size_t channels, size_t count);

// The same in whole numbers of 16 bits, for sums of few rows: twice as fast, and each product is cut off, by 1/255 of a
// level at most. A level is 255, so that a product of a colour and its alpha is exact. Weights are in 1/65536.

/// See `cpixels_combine_rows`.
void cpixels_combine_words(
    const uint16_t *_Nonnull const *_Nonnull rows, size_t row_count, const uint16_t *_Nonnull weights,
    uint16_t *_Nonnull const *_Nonnull targets, size_t target_count, int adds, size_t count);

/// See `cpixels_convolve_row`; the weights to the sides are doubled, for the mean of both sides.
void cpixels_convolve_words(
    const uint16_t *_Nonnull row, const uint16_t *_Nonnull weights, size_t radius, size_t step,
    uint16_t *_Nonnull target, size_t count);

/// See `cpixels_load_samples`.
void cpixels_load_words(const uint8_t *_Nonnull samples, size_t channels, uint16_t *_Nonnull numbers, size_t count);

/// See `cpixels_store_samples`. Restores the cut-off parts of products as far as they are known.
void cpixels_store_words(const uint16_t *_Nonnull numbers, uint8_t *_Nonnull samples, size_t channels, size_t count);

/// Adds a row of numbers, times a weight, to sums.
void cpixels_add_row(const float *_Nonnull row, double weight, double *_Nonnull sums, size_t count);

/// Makes each of `width` pixels of 1, 3 or 4 numbers the sum of those up to `radius` to both sides, times `scale`;
/// beyond the ends the row goes on as its first and last pixel are.
void cpixels_box_row(
    const double *_Nonnull sums, size_t radius, size_t channels, double scale, float *_Nonnull target, size_t width);

/// Makes the luma of `count` pixels of 3 samples; of 4 samples, it is premultiplied and followed by alpha.
///
/// Source: ITU-R BT.709.
void cpixels_load_luma(const uint8_t *_Nonnull samples, size_t channels, float *_Nonnull numbers, size_t count);

/// Moves the samples of `count` pixels away from blurred ones, which are as `cpixels_load_samples` makes them, `amount`
/// times as far as they are apart, if that is at least `threshold`. Alpha stays.
void cpixels_sharpen_samples(
    const uint8_t *_Nonnull samples, const float *_Nonnull blurred, size_t channels, float amount, float threshold,
    uint8_t *_Nonnull target, size_t count);

/// The same by luma, which is as `cpixels_load_luma` makes it: the colours of a pixel move together.
void cpixels_sharpen_luma(
    const uint8_t *_Nonnull samples, const float *_Nonnull blurred, size_t channels, float amount, float threshold,
    uint8_t *_Nonnull target, size_t count);

/// Makes each of `width` pixels of 1, 3 or 4 numbers the mean of the `size` pixels of its block: `sums` are those of
/// `rows` rows.
void cpixels_average_blocks(
    const double *_Nonnull sums, size_t size, size_t rows, size_t channels, float *_Nonnull target, size_t width);

#endif
