#ifndef CJPEG_TRANSFORMER_H
#define CJPEG_TRANSFORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// MARK: Transforms without loss

/// Reads the coefficients of a JPEG and writes them anew; used once, by one thread.
typedef struct cjpeg_transformer cjpeg_transformer;

typedef struct cjpeg_transform {
    /// The values of the frame header.
    int source_width;
    int source_height;
    int source_components;
    /// Rows and columns change places first; then columns and rows are reversed.
    bool swaps_sides;
    bool reverses_columns;
    bool reverses_rows;
    /// Where the result begins in the turned image, in units of its interleaved blocks (MCUs), and its size in
    /// pixels.
    ///
    /// Units that are cut by the right or the lower edge of the source are none of the turned image where its columns
    /// or rows are reversed.
    int left;
    int top;
    int width;
    int height;
    bool is_gray;
    bool is_progressive;
    /// Whether the Huffman tables are made for this image, in a second pass; always so for progressive ones.
    bool has_own_tables;
    /// Whether an image whose end is missing is written as far as it is there.
    bool allows_truncated;
    int maximum_scans;
    /// More bytes than this are a failure.
    size_t maximum_bytes;
} cjpeg_transform;

/// Returns a transformer, or NULL without memory.
///
/// `count` is called with `context` now and then; bytes are not counted.
cjpeg_transformer *_Nullable cjpeg_transformer_create(
    cjpeg_prices prices, cjpeg_count _Nonnull count, void *_Nonnull context);
void cjpeg_transformer_free(cjpeg_transformer *_Nullable transformer);

/// Does the whole transform: done or failed. The result has only the markers that the library needs.
cjpeg_status cjpeg_transformer_run(
    cjpeg_transformer *_Nonnull transformer, const uint8_t *_Nullable bytes, size_t count,
    const cjpeg_transform *_Nonnull transform);

/// Hands over the finished bytes, which the caller frees with `free`.
uint8_t *_Nullable cjpeg_transformer_take(cjpeg_transformer *_Nonnull transformer, size_t *_Nonnull count);

/// Whether the input ended before the image did, as a decoder finds it.
bool cjpeg_transformer_end_is_missing(const cjpeg_transformer *_Nonnull transformer);
/// The damage that was found in the source.
unsigned cjpeg_transformer_damage(const cjpeg_transformer *_Nonnull transformer);
cjpeg_failure cjpeg_transformer_failure(const cjpeg_transformer *_Nonnull transformer);
const char *_Nonnull cjpeg_transformer_message(const cjpeg_transformer *_Nonnull transformer);

/// Whether the tables of the standard have a code for each coefficient of `blocks` blocks; differences of the first
/// ones of blocks may have one bit more than others.
bool cjpeg_fit_standard_tables(const int16_t *_Nonnull coefficients, size_t blocks);

#endif
