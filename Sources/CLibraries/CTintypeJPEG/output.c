// SPDX-License-Identifier: Apache-2.0

#include "output.h"

#include <stdlib.h>

// The destination is the first member of `cjpeg_output`.
static cjpeg_output *output_of(j_compress_ptr library) {
    return (cjpeg_output *)library->dest;
}

static void init_destination(j_compress_ptr library) {
    cjpeg_output *output = output_of(library);
    output->destination.next_output_byte = output->bytes;
    output->destination.free_in_buffer = output->capacity;
}

static _Noreturn void fail_by_size(cjpeg_output *output) {
    cjpeg_report_fail(output->report, cjpeg_failure_size, "It has more bytes than allowed");
}

// Called when the whole buffer is full. The value of free_in_buffer does not matter.
static boolean empty_output_buffer(j_compress_ptr library) {
    cjpeg_output *output = output_of(library);
    if (output->capacity > output->maximum_bytes) fail_by_size(output);
    size_t capacity = output->capacity * 2;
    uint8_t *bytes = realloc(output->bytes, capacity);
    if (bytes == NULL) cjpeg_report_fail(output->report, cjpeg_failure_memory, "There is no memory for the result");
    output->destination.next_output_byte = bytes + output->capacity;
    output->destination.free_in_buffer = capacity - output->capacity;
    output->bytes = bytes;
    output->capacity = capacity;
    return TRUE;
}

static void term_destination(j_compress_ptr library) {
    cjpeg_output *output = output_of(library);
    output->count = output->capacity - output->destination.free_in_buffer;
    if (output->count > output->maximum_bytes) fail_by_size(output);
}

void cjpeg_output_prepare(cjpeg_output *output, j_compress_ptr library, cjpeg_report *report) {
    output->destination.init_destination = init_destination;
    output->destination.empty_output_buffer = empty_output_buffer;
    output->destination.term_destination = term_destination;
    output->report = report;
    library->dest = &output->destination;
}

void cjpeg_output_begin(cjpeg_output *output, size_t guess, size_t maximum_bytes) {
    output->maximum_bytes = maximum_bytes;
    if (output->bytes != NULL) return;
    output->capacity = guess < 16384 ? 16384 : guess;
    output->bytes = malloc(output->capacity);
    if (output->bytes == NULL) {
        cjpeg_report_fail(output->report, cjpeg_failure_memory, "There is no memory for the result");
    }
}

uint8_t *cjpeg_output_take(cjpeg_output *output, size_t *count) {
    // The unused part of the buffer may be as large as the image.
    uint8_t *bytes = realloc(output->bytes, output->count);
    if (bytes == NULL) bytes = output->bytes;
    *count = output->count;
    output->bytes = NULL;
    output->capacity = 0;
    return bytes;
}
