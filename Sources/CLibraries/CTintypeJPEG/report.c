// SPDX-License-Identifier: Apache-2.0

#include "report.h"

#include <string.h>

#include <jerror.h>

static cjpeg_failure failure_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY: return cjpeg_failure_memory;
#if JPEG_LIB_VERSION < 70
    // libjpeg 7 and later report JERR_NOT_COMPILED instead.
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_BAD_PRECISION:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
    case JERR_IMAGE_TOO_BIG:
    // The library can decode such coefficients and tables, but cannot write them.
    case JERR_BAD_DCT_COEF:
    case JERR_MISMATCHED_QUANT_TABLE: return cjpeg_failure_unsupported;
    default: return cjpeg_failure_corrupt;
    }
}

static void error_exit(j_common_ptr library) {
    cjpeg_report *report = library->client_data;
    report->library.format_message(library, report->message);
    report->failure = failure_of(report->library.msg_code);
    longjmp(report->escape, 1);
}

static void emit_message(j_common_ptr library, int level) {
    cjpeg_report *report = library->client_data;
    // Levels of 0 and above are traces.
    if (level >= 0) return;
    switch (report->library.msg_code) {
    case JWRN_JPEG_EOF: report->end_is_missing = true; break;
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE: report->damage |= cjpeg_damage_invalid_codes; break;
    case JWRN_HIT_MARKER: report->damage |= cjpeg_damage_missing_data; break;
    case JWRN_MUST_RESYNC: report->damage |= cjpeg_damage_lost_restarts; break;
    case JWRN_BOGUS_PROGRESSION: report->damage |= cjpeg_damage_disordered_scans; break;
    // Extraneous bytes, unusual parameters of a scan, or an unknown Adobe marker. No sample is lost.
    default: break;
    }
}

bool cjpeg_find_marker(const uint8_t **bytes, size_t *count, bool *is_behind_fill) {
    while (*count > 0) {
        size_t passed = 1;
        bool found = false;
        if (*is_behind_fill) {
            found = **bytes != 0 && **bytes != 0xFF;
            *is_behind_fill = **bytes == 0xFF;
        } else {
            const uint8_t *fill = memchr(*bytes, 0xFF, *count);
            passed = fill == NULL ? *count : (size_t)(fill - *bytes) + 1;
            *is_behind_fill = fill != NULL;
        }
        *bytes += passed;
        *count -= passed;
        if (found) return true;
    }
    return false;
}

// The library's default prints to standard error.
static void output_message(j_common_ptr library) {
    (void)library;
}

struct jpeg_error_mgr *cjpeg_report_prepare(cjpeg_report *report) {
    jpeg_std_error(&report->library);
    report->library.error_exit = error_exit;
    report->library.emit_message = emit_message;
    report->library.output_message = output_message;
    return &report->library;
}

_Noreturn void cjpeg_report_fail(cjpeg_report *report, cjpeg_failure failure, const char *message) {
    report->failure = failure;
    strncpy(report->message, message, sizeof(report->message) - 1);
    longjmp(report->escape, 1);
}
