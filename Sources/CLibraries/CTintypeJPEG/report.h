// SPDX-License-Identifier: Apache-2.0

#ifndef CJPEG_REPORT_H
#define CJPEG_REPORT_H

#include "CTintypeJPEG.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/// The failure of a coder, and the jump out of the library. It is the first member of each coder, which is the
/// library's `client_data`, so that the library's callbacks find it.
typedef struct cjpeg_report {
    struct jpeg_error_mgr library;
    jmp_buf escape;
    /// Whether the library continued past the end of the input.
    bool end_is_missing;
    /// The library's warnings, as flags of `cjpeg_damage`.
    unsigned damage;
    /// The Huffman decoder that replaces the library's, or NULL. The library frees it with the image.
    struct cjpeg_entropy *entropy;
    cjpeg_failure failure;
    char message[JMSG_LENGTH_MAX];
} cjpeg_report;

/// Directs the library's errors and warnings to `report`.
struct jpeg_error_mgr *cjpeg_report_prepare(cjpeg_report *report);

/// Returns whether `*count` bytes at `*bytes` contain a marker, and advances both past the marker, or to the end.
///
/// `*is_behind_fill` says whether the byte before the first one began a marker. The call updates it for the next bytes.
bool cjpeg_find_marker(const uint8_t **bytes, size_t *count, bool *is_behind_fill);

/// Fails with a message of this package. Does not return.
_Noreturn void cjpeg_report_fail(cjpeg_report *report, cjpeg_failure failure, const char *message);

#endif
