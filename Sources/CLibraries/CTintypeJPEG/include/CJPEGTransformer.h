// SPDX-License-Identifier: Apache-2.0

#ifndef CJPEG_TRANSFORMER_H
#define CJPEG_TRANSFORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// MARK: Lossless transforms

/// A transformer that reads the coefficients of a JPEG and writes them to a new one. One thread may use it, once.
typedef struct cjpeg_transformer cjpeg_transformer;

typedef struct cjpeg_transform {
    /// The properties in the frame header.
    int source_width;
    int source_height;
    int source_components;
    /// The transform first swaps rows and columns, and then reverses columns and rows.
    bool swaps_sides;
    bool reverses_columns;
    bool reverses_rows;
    /// The offset of the result in the turned image, in MCUs (units of interleaved blocks), and the size of the result
    /// in pixels.
    ///
    /// If columns or rows are reversed, the turned image does not contain the units that the right or lower edge of the
    /// source cuts.
    int left;
    int top;
    int width;
    int height;
    bool is_gray;
    bool is_progressive;
    /// Whether a second pass optimises the Huffman tables for this image. Progressive images always have their own
    /// tables.
    bool has_own_tables;
    /// Whether to write an incomplete image as far as it is present.
    bool allows_truncated;
    int maximum_scans;
    /// The largest allowed result. A larger one is a failure.
    size_t maximum_bytes;
} cjpeg_transform;

/// Returns a transformer, or NULL if memory runs out.
///
/// Long calls regularly call `count` with `context`. Bytes do not count as work.
cjpeg_transformer *_Nullable cjpeg_transformer_create(
    cjpeg_prices prices, cjpeg_count _Nonnull count, void *_Nonnull context);
void cjpeg_transformer_free(cjpeg_transformer *_Nullable transformer);

/// Performs the whole transform. Returns done or failed. The result has only the markers that the library needs.
cjpeg_status cjpeg_transformer_run(
    cjpeg_transformer *_Nonnull transformer, const uint8_t *_Nullable bytes, size_t count,
    const cjpeg_transform *_Nonnull transform);

/// Returns the finished bytes and transfers their ownership. The caller frees them with `free`.
uint8_t *_Nullable cjpeg_transformer_take(cjpeg_transformer *_Nonnull transformer, size_t *_Nonnull count);

/// Whether the input ended before the image did, as `cjpeg_decoder_end_is_missing` defines it.
bool cjpeg_transformer_end_is_missing(const cjpeg_transformer *_Nonnull transformer);
/// Returns the damage found in the source, as flags of `cjpeg_damage`.
unsigned cjpeg_transformer_damage(const cjpeg_transformer *_Nonnull transformer);
cjpeg_failure cjpeg_transformer_failure(const cjpeg_transformer *_Nonnull transformer);
const char *_Nonnull cjpeg_transformer_message(const cjpeg_transformer *_Nonnull transformer);

/// Whether the standard tables have a code for each coefficient of `blocks` blocks. Differences of DC coefficients may
/// have one bit more than AC coefficients.
bool cjpeg_fit_standard_tables(const int16_t *_Nonnull coefficients, size_t blocks);

#endif
