// SPDX-License-Identifier: Apache-2.0

#ifndef CJPEG_OUTPUT_H
#define CJPEG_OUTPUT_H

#include "report.h"

/// The library's destination: a memory buffer that grows up to a limit.
typedef struct cjpeg_output {
    struct jpeg_destination_mgr destination;
    cjpeg_report *report;
    uint8_t *bytes;
    size_t capacity;
    size_t count;
    size_t maximum_bytes;
} cjpeg_output;

/// Makes `output` the destination of `library`, with `report` for its errors.
void cjpeg_output_prepare(cjpeg_output *output, j_compress_ptr library, cjpeg_report *report);

/// Starts a new result. Allocates about `guess` bytes if there is no buffer yet. Errors leave through `report`.
void cjpeg_output_begin(cjpeg_output *output, size_t guess, size_t maximum_bytes);

/// Returns the finished bytes and transfers their ownership. The caller frees them with `free`.
uint8_t *cjpeg_output_take(cjpeg_output *output, size_t *count);

#endif
