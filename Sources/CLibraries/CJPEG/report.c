#include "report.h"

#include <string.h>

#include <jerror.h>

static cjpeg_failure failure_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY: return cjpeg_failure_memory;
#if JPEG_LIB_VERSION < 70
    // From libjpeg 7 on it is JERR_NOT_COMPILED.
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_BAD_PRECISION:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
    case JERR_IMAGE_TOO_BIG: return cjpeg_failure_unsupported;
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
    // Levels from 0 on are traces.
    if (level >= 0) return;
    if (library->err->msg_code == JWRN_JPEG_EOF) ((cjpeg_report *)library->client_data)->end_is_missing = true;
}

// The library's own prints to standard error.
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
