// SPDX-License-Identifier: Apache-2.0

#ifndef CWEBPSTEPS_H
#define CWEBPSTEPS_H

#include <stddef.h>
#include <stdint.h>
#include <webp/decode.h>

// libwebp decodes as many rows of a lossy image as its bytes allow. Rows without detail need no bytes, so one call may
// decode a hundred megapixels. If a decoder uses threads, libwebp asks its worker interface to finish the previous
// row's job before it starts the next one. This module runs these jobs on the calling thread, and uses that request to
// ask the caller whether to continue.

/// The minimum width of images for which libwebp uses the worker interface.
#define CWEBPSTEPS_MINIMUM_WIDTH 512

/// Whether this libwebp lets its worker interface be replaced, and no other code has replaced ours.
///
/// The first call replaces the interface. Other users of libwebp with threads in the process still get the previous
/// interface.
int cwebpsteps_are_available(void);

/// Decodes as far as the bytes allow, like WebPIUpdate, but calls `go_on` before each row of blocks.
///
/// If `go_on` returns 0, the result is VP8_STATUS_USER_ABORT or another error, and the decoder can only be deleted.
/// Lossless images, narrow images and decoders without threads do not call `go_on`.
VP8StatusCode cwebpsteps_update(
    WebPIDecoder *_Nonnull decoder, const uint8_t *_Nullable bytes, size_t count,
    int (*_Nonnull go_on)(void *_Nullable context), void *_Nullable context);

#endif
