#ifndef CJPEG_REPORT_H
#define CJPEG_REPORT_H

#include "CTintypeJPEG.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/// What went wrong, and the way out of the library. The first member of both coders, which are
/// the library's `client_data`: what its callbacks have to find.
typedef struct cjpeg_report {
    struct jpeg_error_mgr library;
    jmp_buf escape;
    /// Whether the library went on after the end of the input.
    bool end_is_missing;
    /// The library's warnings: `cjpeg_damage`.
    unsigned damage;
    /// Reads the Huffman codes instead of the library, if set; freed with the library's image.
    struct cjpeg_entropy *entropy;
    cjpeg_failure failure;
    char message[JMSG_LENGTH_MAX];
} cjpeg_report;

/// Makes the library report to `report`.
struct jpeg_error_mgr *cjpeg_report_prepare(cjpeg_report *report);

/// Whether a marker lies in `*count` bytes from `*bytes` on, which move behind it, or to the end.
///
/// `*is_behind_fill` says whether the byte before the first one was the first of a marker; it is kept for the next
/// bytes.
bool cjpeg_find_marker(const uint8_t **bytes, size_t *count, bool *is_behind_fill);

/// Fails with a message of our own; does not return.
_Noreturn void cjpeg_report_fail(cjpeg_report *report, cjpeg_failure failure, const char *message);

#endif
