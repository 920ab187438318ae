#ifndef CPIXELKERNELS_RESAMPLING_H
#define CPIXELKERNELS_RESAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Resampling: stored rows are added to target rows by weights, and their columns in the same way.
//
// Numbers are samples as they are, 0 to 255, or the light of a sample on the same scale. Where there is alpha, colours
// are multiplied by it and it by 255, so that all are 0 to 65,025; colours are divided by it at the end.
//
// Rows of numbers and stored rows lie at multiples of 64 bytes, and can be read, those of numbers written too, up to
// the next multiple of `cpixels_row_padding` samples.

// In linear light and where an image grows, all is done in fractions; where it shrinks, in whole numbers, which is
// faster.

/// The padding of the samples of a row.
#define cpixels_row_padding 16

/// The most rows that are added at once.
#define cpixels_most_rows 8

/// The most rows that are packed at once.
#define cpixels_most_packed_rows 32

/// How samples become numbers, and numbers samples.
struct cpixels_samples {
    /// 1, 3, or 4 with alpha.
    size_t channels;
    /// The light of each sample; NULL where samples are taken as they are.
    const float *_Nullable light;
    /// The light from which on each sample is the nearest one, 257 of them, the last out of reach.
    const float *_Nullable limits;
    /// The sample whose limits hold the beginning of each 1/4096 of the light, 4,097 of them.
    const uint8_t *_Nullable nearest;
};

/// How many rows lie side by side in a pack of that many channels: the columns of all are filtered together.
size_t cpixels_places(size_t channels);

// In fractions

/// Adds stored rows to sums.
///
/// - rows: at most `cpixels_most_rows`.
/// - weights: `cpixels_most_rows` for each sum: the share of each row in it.
/// - is_new: for each sum whether it begins, and holds nothing yet.
/// - width: of a row in pixels.
void cpixels_add_numbers(
    const uint8_t *_Nonnull const *_Nonnull rows, size_t row_count, const struct cpixels_samples *_Nonnull samples,
    float *_Nonnull const *_Nonnull sums, const float *_Nonnull weights, const bool *_Nonnull is_new, size_t sum_count,
    size_t width);

/// Makes a row of numbers of a few others, at most `cpixels_most_rows`, by their weights.
void cpixels_mix_rows(
    const float *_Nonnull const *_Nonnull rows, const float *_Nonnull weights, size_t row_count, float *_Nonnull sum,
    size_t count);

/// Puts a row of numbers into its place in a pack: pixel by pixel, and of each pixel row by row.
void cpixels_pack_row(const float *_Nonnull row, size_t channels, size_t place, float *_Nonnull pack, size_t width);

/// Filters the columns of a pack into rows of numbers.
///
/// - firsts: for each target column, the first source column that counts.
/// - counts: how many do.
/// - weights: theirs, one column's after the other's.
/// - rows: as many as have a place in the pack, or the first of them.
void cpixels_filter_columns(
    const float *_Nonnull pack, size_t channels, const int32_t *_Nonnull firsts, const int32_t *_Nonnull counts,
    const float *_Nonnull weights, float *_Nonnull const *_Nonnull rows, size_t row_count, size_t width);

/// Makes stored samples of a row of numbers, divided by alpha, cut to the range and rounded.
///
/// A pixel whose alpha rounds to 0 has no colour: all its samples are 0.
void cpixels_store_row(
    const float *_Nonnull row, const struct cpixels_samples *_Nonnull samples, uint8_t *_Nonnull stored, size_t width);

// In whole numbers
//
// Weights are whole numbers. All of a row or column make the unit, which is 1 << unit_bits, at most 32,768; their
// absolute values make less than 65,536.

/// Adds stored rows to sums, as `cpixels_add_numbers` does.
void cpixels_add_rows(
    const uint8_t *_Nonnull const *_Nonnull rows, size_t row_count, size_t channels,
    int32_t *_Nonnull const *_Nonnull sums, const int16_t *_Nonnull weights, const bool *_Nonnull is_new,
    size_t sum_count, size_t width);

/// Puts a complete sum into its place in a pack, whose columns lie in pairs: of each pair row by row, and sample by
/// sample. Sums can be read up to 8 numbers further.
void cpixels_pack_sums(
    const int32_t *_Nonnull sums, size_t channels, size_t place, int unit_bits, int16_t *_Nonnull pack, size_t width);

/// Makes complete sums of stored rows and puts them into the first places of a pack.
///
/// - rows: at most `cpixels_most_packed_rows`.
/// - weights: `cpixels_most_packed_rows` for each place.
void cpixels_pack_rows(
    const uint8_t *_Nonnull const *_Nonnull rows, size_t row_count, size_t channels, const int16_t *_Nonnull weights,
    size_t place_count, int unit_bits, int16_t *_Nonnull pack, size_t width);

/// Filters the columns of a pack into stored rows, divided by alpha, cut to the range and rounded.
///
/// - firsts: for each target column, the first pair of source columns that counts.
/// - counts: how many pairs do.
/// - weights: theirs, one column's after the other's.
/// - rows: as many as have a place in the pack, or the first of them.
void cpixels_store_columns(
    const int16_t *_Nonnull pack, size_t channels, const int32_t *_Nonnull firsts, const int32_t *_Nonnull counts,
    const int16_t *_Nonnull weights, int unit_bits, uint8_t *_Nonnull const *_Nonnull rows, size_t row_count,
    size_t width);

#endif
