// SPDX-License-Identifier: Apache-2.0

#ifndef CZLIB_SHIM_H
#define CZLIB_SHIM_H

#include <zlib.h>

/// Calls `inflateInit`, a macro that Swift does not import.
static inline int czlib_inflate_init(z_stream *stream) {
    return inflateInit(stream);
}

/// Calls `deflateInit`, also a macro.
static inline int czlib_deflate_init(z_stream *stream) {
    return deflateInit(stream, 6);
}

/// Like `czlib_inflate_init`, with a choice of the wrapper format. See `inflateInit2` in zlib's manual.
static inline int czlib_inflate_init2(z_stream *stream, int window_bits) {
    return inflateInit2(stream, window_bits);
}

#endif
