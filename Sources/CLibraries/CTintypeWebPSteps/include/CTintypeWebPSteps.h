#ifndef CWEBPSTEPS_H
#define CWEBPSTEPS_H

#include <stddef.h>
#include <stdint.h>
#include <webp/decode.h>

// libwebp decodes as many rows of a lossy image as the bytes suffice for, and rows without detail take none: a
// hundred megapixels may come in one call. It asks its worker interface for the end of the last row's job before it
// begins the next one where a decoder uses threads. Here these jobs run on the calling thread, and the question is
// passed on.

/// The narrowest image that libwebp asks the worker interface for.
#define CWEBPSTEPS_MINIMUM_WIDTH 512

/// Whether this libwebp lets its worker interface be replaced, and nothing else replaced it after us.
///
/// Replaces it when first asked. Others in the process that use libwebp with threads go on with the interface that was
/// there before.
int cwebpsteps_are_available(void);

/// As WebPIUpdate: decodes as far as the bytes go, but asks before each row of blocks whether to go on.
///
/// Where `go_on` returns 0, the result is VP8_STATUS_USER_ABORT, or another error, and the decoder can only be deleted.
/// Without steps, for a lossless image, one that is narrow, or a decoder that does not use threads, nothing is asked.
VP8StatusCode cwebpsteps_update(
    WebPIDecoder *_Nonnull decoder, const uint8_t *_Nullable bytes, size_t count,
    int (*_Nonnull go_on)(void *_Nullable context), void *_Nullable context);

#endif
