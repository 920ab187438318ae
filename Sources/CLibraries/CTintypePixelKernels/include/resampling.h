// SPDX-License-Identifier: Apache-2.0

#ifndef CPIXELKERNELS_RESAMPLING_H
#define CPIXELKERNELS_RESAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Resampling computes target rows as weighted sums of stored rows, and then filters their columns in the same way.
//
// Numbers are the samples themselves, 0 to 255, or the light of a sample on the same scale. With alpha, colours are
// multiplied by alpha, and alpha by 255, so that all numbers are 0 to 65,025. The last step divides colours by alpha.
//
// Rows of numbers and stored rows start at multiples of 64 bytes. They are readable up to the next multiple of
// `cpixels_row_padding` samples. Rows of numbers are also writable up to there.

// Enlarging, and all resampling in linear light, use floating-point numbers. Other reductions use integers, which are
// faster.

/// Rows are padded to a multiple of this number of samples.
#define cpixels_row_padding 16

/// The maximum number of rows in one call that adds rows.
#define cpixels_most_rows 8

/// The maximum number of rows in one call that packs rows.
#define cpixels_most_packed_rows 32

/// The conversion between samples and numbers.
struct cpixels_samples {
    /// 1, 3, or 4 with alpha.
    size_t channels;
    /// The light of each sample, or NULL if the numbers are the samples themselves.
    const float *_Nullable light;
    /// The least light for which each sample is the nearest one. There are 257 entries, and the last is out of reach.
    const float *_Nullable limits;
    /// For the beginning of each 1/4096 of the light, the sample whose limits contain it. There are 4,097 entries.
    const uint8_t *_Nullable nearest;
};

/// Returns the number of rows in a pack for a number of channels. The columns of all these rows are filtered together.
size_t cpixels_places(size_t channels);

// Floating-point numbers

/// Adds weighted stored rows to sums.
///
/// - rows: at most `cpixels_most_rows`.
/// - weights: for each sum `cpixels_most_rows` weights, one for each row.
/// - is_new: for each sum, whether it is new, so that its old contents do not count.
/// - width: the width of a row in pixels.
void cpixels_add_numbers(
    const uint8_t *_Nonnull const *_Nonnull rows, size_t row_count, const struct cpixels_samples *_Nonnull samples,
    float *_Nonnull const *_Nonnull sums, const float *_Nonnull weights, const bool *_Nonnull is_new, size_t sum_count,
    size_t width);

/// Computes a row of numbers as a weighted sum of at most `cpixels_most_rows` rows.
void cpixels_mix_rows(
    const float *_Nonnull const *_Nonnull rows, const float *_Nonnull weights, size_t row_count, float *_Nonnull sum,
    size_t count);

/// Copies a row of numbers to its place in a pack. A pack is ordered by pixel, and within each pixel by row.
void cpixels_pack_row(const float *_Nonnull row, size_t channels, size_t place, float *_Nonnull pack, size_t width);

/// Filters the columns of a pack into rows of numbers.
///
/// - firsts: for each target column, the first source column with a weight.
/// - counts: for each target column, the number of source columns.
/// - weights: the weights of all target columns, one column after another.
/// - rows: at most as many rows as the pack has places.
void cpixels_filter_columns(
    const float *_Nonnull pack, size_t channels, const int32_t *_Nonnull firsts, const int32_t *_Nonnull counts,
    const float *_Nonnull weights, float *_Nonnull const *_Nonnull rows, size_t row_count, size_t width);

/// Converts a row of numbers to stored samples, divided by alpha, clamped and rounded.
///
/// If alpha rounds to 0, all samples of the pixel are 0.
void cpixels_store_row(
    const float *_Nonnull row, const struct cpixels_samples *_Nonnull samples, uint8_t *_Nonnull stored, size_t width);

// Integers
//
// Weights are integers. The weights of a row or column add up to 1 << unit_bits, at most 32,768. The sum of their
// absolute values is below 65,536.

/// Adds weighted stored rows to sums, like `cpixels_add_numbers`.
void cpixels_add_rows(
    const uint8_t *_Nonnull const *_Nonnull rows, size_t row_count, size_t channels,
    int32_t *_Nonnull const *_Nonnull sums, const int16_t *_Nonnull weights, const bool *_Nonnull is_new,
    size_t sum_count, size_t width);

/// Copies a complete sum to its place in a pack. A pack is ordered by pairs of columns, within each pair by row, and
/// within each row by sample. Sums are readable for 8 more numbers.
void cpixels_pack_sums(
    const int32_t *_Nonnull sums, size_t channels, size_t place, int unit_bits, int16_t *_Nonnull pack, size_t width);

/// Computes complete sums of stored rows, and copies them to the first places of a pack.
///
/// - rows: at most `cpixels_most_packed_rows`.
/// - weights: `cpixels_most_packed_rows` weights for each place.
void cpixels_pack_rows(
    const uint8_t *_Nonnull const *_Nonnull rows, size_t row_count, size_t channels, const int16_t *_Nonnull weights,
    size_t place_count, int unit_bits, int16_t *_Nonnull pack, size_t width);

/// Filters the columns of a pack into stored rows, divided by alpha, clamped and rounded.
///
/// - firsts: for each target column, the first pair of source columns with a weight.
/// - counts: for each target column, the number of pairs.
/// - weights: the weights of all target columns, one column after another.
/// - rows: at most as many rows as the pack has places.
void cpixels_store_columns(
    const int16_t *_Nonnull pack, size_t channels, const int32_t *_Nonnull firsts, const int32_t *_Nonnull counts,
    const int16_t *_Nonnull weights, int unit_bits, uint8_t *_Nonnull const *_Nonnull rows, size_t row_count,
    size_t width);

#endif
