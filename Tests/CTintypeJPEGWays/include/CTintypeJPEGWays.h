// SPDX-License-Identifier: Apache-2.0

#ifndef CJPEGWAYS_H
#define CJPEGWAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Decodes JPEGs with and without the entropy decoder of CTintypeJPEG, in ways that CTintypeJPEG itself does not need.

typedef struct jpeg_way {
    /// The size in eighths, from 1 to 8.
    int eighths;
    /// Whether colour with fewer samples is interpolated.
    bool is_fancy;
    /// Whether the library's own functions skip lines and columns.
    bool skips_and_crops;
    bool uses_own_entropy;
} jpeg_way;

typedef struct jpeg_outcome {
    /// The pixels, which the caller frees.
    uint8_t *_Nullable pixels;
    size_t count;
    bool used_own_entropy;
    /// The number of warnings of the library, or of the decoder that replaces it.
    long warning_count;
    /// Whether the library failed, which discards the pixels so far.
    bool has_failed;
} jpeg_outcome;

/// Decodes the JPEG in `bytes`, which has a single scan, into the empty `outcome`.
void jpeg_decode(const uint8_t *_Nullable bytes, size_t count, jpeg_way way, jpeg_outcome *_Nonnull outcome);

#endif
