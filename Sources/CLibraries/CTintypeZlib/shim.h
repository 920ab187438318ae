#ifndef CZLIB_SHIM_H
#define CZLIB_SHIM_H

#include <zlib.h>

/// `inflateInit` is a macro, which Swift does not import.
static inline int czlib_inflate_init(z_stream *stream) {
    return inflateInit(stream);
}

/// `deflateInit` is one, too.
static inline int czlib_deflate_init(z_stream *stream) {
    return deflateInit(stream, 6);
}

/// `czlib_inflate_init` with a choice of the format around the data, as zlib's manual lists them.
static inline int czlib_inflate_init2(z_stream *stream, int window_bits) {
    return inflateInit2(stream, window_bits);
}

#endif
