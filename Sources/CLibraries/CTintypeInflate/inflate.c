// SPDX-License-Identifier: Apache-2.0

#if ISAL
#include "CTintypeInflate.h"

#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The output of a broken stream is exact here. It does not depend on the sizes of the pieces or on earlier memory
// contents. The library alone depends on both:
// - If a distance reaches before the beginning or a code is unassigned, the library's fast loop has already counted the
//   length of the copy. It then returns up to 257 bytes that it never wrote. The slow loop is exact, and runs alone if
//   fewer than eight input bytes are left. So a step restores the state before a piece that fails, and decodes the
//   piece again in halves until a single byte fails.
// - If a piece has more than 2,048 bytes, the last block's table holds two or three literals in one entry. At the end
//   of a truncated file the library loses such an entry as a whole. With smaller pieces each entry holds one literal.
// - After an error, bytes that were decoded ahead stay in the library's buffer.
enum { piece_limit = 2048 };

struct cinflate_stream {
    struct inflate_state state;
    /// The state before the piece that is being decoded.
    struct inflate_state before;
    bool is_broken;
    uint8_t header[2];
    uint8_t header_count;
};

size_t cinflate_size(void) {
    return sizeof(cinflate_stream);
}

cinflate_stream *cinflate_begin(void) {
    // Zeroed, so that the window never contains bytes of other memory.
    cinflate_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) return NULL;
    isal_inflate_init(&stream->state);
    stream->state.crc_flag = ISAL_ZLIB;
    return stream;
}

void cinflate_end(cinflate_stream *stream) {
    free(stream);
}

static void save(struct inflate_state *to, const struct inflate_state *from) {
    size_t used = offsetof(struct inflate_state, tmp_out_buffer) + (size_t)from->tmp_out_valid;
    memcpy(to, from, used);
}

/// Decompresses as much of a piece as possible. Reduces the counts by the bytes read and written.
static bool inflates(
    struct inflate_state *state, const uint8_t *input, uint32_t *input_count, uint8_t *output, uint32_t *output_count) {
    // The library does not write to the input, although its type is not const.
    state->next_in = (uint8_t *)input;
    state->avail_in = *input_count;
    state->next_out = output;
    state->avail_out = *output_count;
    int code = isal_inflate(state);
    *input_count = state->avail_in;
    *output_count = state->avail_out;
    return code == ISAL_DECOMP_OK || code == ISAL_END_INPUT || code == ISAL_OUT_OVERFLOW;
}

/// Copies bytes that were decoded before the error to the output.
static void drain(struct inflate_state *state, uint8_t *output, uint32_t *output_count) {
    uint32_t count = (uint32_t)(state->tmp_out_valid - state->tmp_out_processed);
    if (count > *output_count) count = *output_count;
    memcpy(output, state->tmp_out_buffer + state->tmp_out_processed, count);
    state->tmp_out_processed += (int32_t)count;
    *output_count -= count;
}

/// Whether a stream begins with a header of RFC 1950, section 2.2, without a preset dictionary. The library does not
/// reject a dictionary, and decodes the stream as if the dictionary were zeros.
static bool has_sound_header(cinflate_stream *stream, const uint8_t *input, uint32_t input_count) {
    for (uint32_t index = 0; index < input_count && stream->header_count < 2; index++) {
        stream->header[stream->header_count++] = input[index];
    }
    if (stream->header_count < 2) return true;
    uint8_t method = stream->header[0], flags = stream->header[1];
    return (method & 15) == 8 && method >> 4 <= 7 && (method << 8 | flags) % 31 == 0 && !(flags & 32);
}

enum cinflate_result cinflate_step(
    cinflate_stream *stream, const uint8_t *input, uint32_t *input_count, uint8_t *output, uint32_t *output_count) {
    struct inflate_state *state = &stream->state;
    uint32_t piece = piece_limit;
    if (!has_sound_header(stream, input, *input_count)) stream->is_broken = true;
    while (!stream->is_broken) {
        if (piece > *input_count) piece = *input_count;
        uint32_t input_rest = piece, output_rest = *output_count;
        save(&stream->before, state);
        if (!inflates(state, input, &input_rest, output, &output_rest)) {
            if (piece > 1) {
                save(state, &stream->before);
                piece /= 2;
                continue;
            }
            stream->is_broken = true;
        }
        uint32_t used = piece - input_rest, made = *output_count - output_rest;
        if (input) input += used;
        output += made;
        *input_count -= used;
        *output_count -= made;
        if (stream->is_broken) break;
        if (state->block_state == ISAL_BLOCK_FINISH) return cinflate_is_finished;
        if (*output_count == 0 || (used == 0 && made == 0)) return cinflate_goes_on;
    }
    drain(state, output, output_count);
    return state->tmp_out_processed < state->tmp_out_valid ? cinflate_goes_on : cinflate_is_broken;
}
#endif
