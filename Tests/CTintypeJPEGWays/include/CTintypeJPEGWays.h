#ifndef CJPEGWAYS_H
#define CJPEGWAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Decodes JPEGs with and without the entropy decoder of CTintypeJPEG in ways that CTintypeJPEG itself has no use for.

typedef struct jpeg_way {
    /// The size, in eighths: 1 to 8.
    int eighths;
    /// Whether colour is interpolated where it has fewer samples.
    bool is_fancy;
    /// Whether lines and columns are left out, by the library's own functions.
    bool skips_and_crops;
    bool uses_own_entropy;
} jpeg_way;

typedef struct jpeg_outcome {
    /// Freed by the caller.
    uint8_t *_Nullable pixels;
    size_t count;
    bool used_own_entropy;
    /// How often the library, or the decoder in its place, warned.
    long warning_count;
    /// Whether the library failed; what it gave until then is lost.
    bool has_failed;
} jpeg_outcome;

/// Decodes the JPEG in `bytes`, a single scan; `outcome` holds nothing before.
void jpeg_decode(const uint8_t *_Nullable bytes, size_t count, jpeg_way way, jpeg_outcome *_Nonnull outcome);

#endif
