#include "CInflate.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

struct cinflate_stream {
    struct inflate_state state;
};

size_t cinflate_size(void) {
    return sizeof(cinflate_stream);
}

cinflate_stream *cinflate_begin(void) {
    cinflate_stream *stream = malloc(sizeof(*stream));
    if (!stream) return NULL;
    isal_inflate_init(&stream->state);
    stream->state.crc_flag = ISAL_ZLIB;
    return stream;
}

void cinflate_end(cinflate_stream *stream) {
    free(stream);
}

enum cinflate_result cinflate_step(
    cinflate_stream *stream, const uint8_t *input, uint32_t *input_count, uint8_t *output, uint32_t *output_count) {
    struct inflate_state *state = &stream->state;
    // The input is not written to; only its type says so.
    state->next_in = (uint8_t *)input;
    state->avail_in = *input_count;
    state->next_out = output;
    state->avail_out = *output_count;
    int code = isal_inflate(state);
    *input_count = state->avail_in;
    *output_count = state->avail_out;
    if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT && code != ISAL_OUT_OVERFLOW) return cinflate_is_broken;
    return state->block_state == ISAL_BLOCK_FINISH ? cinflate_is_finished : cinflate_goes_on;
}
