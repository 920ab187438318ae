#ifndef CJPEG_OUTPUT_H
#define CJPEG_OUTPUT_H

#include "report.h"

/// The output of the library: memory that grows up to a limit.
typedef struct cjpeg_output {
    struct jpeg_destination_mgr destination;
    cjpeg_report *report;
    uint8_t *bytes;
    size_t capacity;
    size_t count;
    size_t maximum_bytes;
} cjpeg_output;

/// Makes `output` the destination of `library`; what goes wrong is said by `report`.
void cjpeg_output_prepare(cjpeg_output *output, j_compress_ptr library, cjpeg_report *report);

/// Begins anew, with room for about `guess` bytes unless there is some. Fails by the way out of `report`.
void cjpeg_output_begin(cjpeg_output *output, size_t guess, size_t maximum_bytes);

/// Hands over the finished bytes, which the caller frees with `free`.
uint8_t *cjpeg_output_take(cjpeg_output *output, size_t *count);

#endif
