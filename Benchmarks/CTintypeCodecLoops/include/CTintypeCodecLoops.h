// SPDX-License-Identifier: Apache-2.0

#ifndef CCODECLOOPS_H
#define CCODECLOOPS_H

#include <stddef.h>
#include <stdint.h>

// Minimal direct use of the C libraries, which shows the possible gain or loss of the code around them.

/// Decodes a JPEG to a `divisor`-th of its size, as RGB rows at `pixels`, which has room for `capacity` bytes, as
/// `tjbench` does: into the same memory again and again.
///
/// Returns 0, or -1 when libjpeg gave up or there is no room.
int codec_loop_decode_jpeg(
    const uint8_t *_Nonnull bytes, size_t count, int divisor, uint8_t *_Nonnull pixels, size_t capacity,
    int *_Nonnull width, int *_Nonnull height);

/// Encodes RGB rows as baseline JPEG 4:2:0. Returns the number of bytes, or 0.
size_t codec_loop_encode_jpeg(const uint8_t *_Nonnull pixels, int width, int height, size_t stride, int quality);

/// Turns a JPEG by quarters clockwise, or not at all, through TurboJPEG, with the standard tables or in scans. Copies
/// the metadata. Returns the number of bytes, or 0.
size_t codec_loop_transform_jpeg(const uint8_t *_Nonnull bytes, size_t count, int turns, int is_progressive);

/// Encodes RGB rows as lossy WebP with the library's own settings (method 4). Returns the number of bytes, or 0.
size_t codec_loop_encode_webp(const uint8_t *_Nonnull pixels, int width, int height, size_t stride, int quality);

#endif
