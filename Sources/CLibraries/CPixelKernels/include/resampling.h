#ifndef CPIXELKERNELS_RESAMPLING_H
#define CPIXELKERNELS_RESAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Resampling: stored rows are added to target rows by weights, and their columns in the same way.
//
// Numbers are samples as they are, 0 to 255, or the light of a sample on the same scale. Where there is alpha, colours
// are multiplied by it, 0 to 65,025, and divided by it at the end.
//
// Rows of numbers and stored rows lie at multiples of 32 bytes, and can be read, those of numbers written too, up to
// the next multiple of `cpixels_row_padding` samples.

/// What the samples of a row are padded to.
#define cpixels_row_padding 16

/// The most rows that are added at once.
#define cpixels_most_rows 8

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

/// Adds stored rows to sums.
///
/// - rows: at most `cpixels_most_rows`.
/// - weights: `cpixels_most_rows` for each sum: the share of each row in it.
/// - is_new: for each sum whether it begins, and holds nothing yet.
/// - width: of a row in pixels.
void cpixels_add_rows(
    const uint8_t *_Nonnull const *_Nonnull rows, size_t row_count, const struct cpixels_samples *_Nonnull samples,
    float *_Nonnull const *_Nonnull sums, const float *_Nonnull weights, const bool *_Nonnull is_new, size_t sum_count,
    size_t width);

/// Makes a row of numbers of a few others by their weights.
void cpixels_mix_rows(
    const float *_Nonnull const *_Nonnull rows, const float *_Nonnull weights, size_t row_count, float *_Nonnull sum,
    size_t count);

/// How many rows lie side by side in a pack of that many channels: the columns of all are filtered together.
size_t cpixels_pack_rows(size_t channels);

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

#endif
