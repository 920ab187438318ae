// SPDX-License-Identifier: Apache-2.0

#if !ISAL
#include "CTintypeInflate.h"

#include <stdlib.h>
#include <zlib.h>

// The same functions with zlib, for builds without the trait ISAL.

struct cinflate_stream {
    z_stream zlib;
};

size_t cinflate_size(void) {
    // The window, and the state with its tables.
    return sizeof(cinflate_stream) + (48 << 10);
}

cinflate_stream *cinflate_begin(void) {
    cinflate_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) return NULL;
    if (inflateInit(&stream->zlib) != Z_OK) {
        free(stream);
        return NULL;
    }
    return stream;
}

void cinflate_end(cinflate_stream *stream) {
    inflateEnd(&stream->zlib);
    free(stream);
}

enum cinflate_result cinflate_step(
    cinflate_stream *stream, const uint8_t *input, uint32_t *input_count, uint8_t *output, uint32_t *output_count) {
    z_stream *zlib = &stream->zlib;
    // The library does not write to the input, although its type is not const.
    zlib->next_in = (uint8_t *)input;
    zlib->avail_in = *input_count;
    zlib->next_out = output;
    zlib->avail_out = *output_count;
    int code = inflate(zlib, Z_SYNC_FLUSH);
    *input_count = zlib->avail_in;
    *output_count = zlib->avail_out;
    switch (code) {
    case Z_STREAM_END: return cinflate_is_finished;
    // Z_BUF_ERROR: without more input or output nothing can be done.
    case Z_OK:
    case Z_BUF_ERROR: return cinflate_goes_on;
    default: return cinflate_is_broken;
    }
}
#endif
