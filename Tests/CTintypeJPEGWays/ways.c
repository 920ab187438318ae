// SPDX-License-Identifier: Apache-2.0

#include "CTintypeJPEGWays.h"

#include <stdlib.h>

#include "entropy.h"
#include "report.h"

// Only warnings count, because levels from 0 on are traces.
static void count_warning(j_common_ptr library, int level) {
    if (level < 0) library->err->num_warnings++;
}

static void read_lines(j_decompress_ptr library, jpeg_outcome *outcome, JDIMENSION count) {
    for (JDIMENSION line = 0; line < count && library->output_scanline < library->output_height; line++) {
        JSAMPROW row = outcome->pixels + outcome->count;
        jpeg_read_scanlines(library, &row, 1);
        outcome->count += (size_t)library->output_width * library->output_components;
    }
}

void jpeg_decode(const uint8_t *bytes, size_t count, jpeg_way way, jpeg_outcome *outcome) {
    struct jpeg_decompress_struct library;
    cjpeg_report report = {0};
    library.err = cjpeg_report_prepare(&report);
    library.client_data = &report;
    report.library.emit_message = count_warning;
    outcome->has_failed = true;
    if (setjmp(report.escape)) {
        outcome->warning_count = report.library.num_warnings;
        jpeg_destroy_decompress(&library);
        return;
    }
    jpeg_create_decompress(&library);
    library.client_data = &report;
    jpeg_mem_src(&library, bytes, count);
    jpeg_read_header(&library, TRUE);
    library.scale_num = (unsigned)way.eighths;
    library.scale_denom = 8;
    library.do_fancy_upsampling = way.is_fancy;
    jpeg_start_decompress(&library);
    if (way.uses_own_entropy) outcome->used_own_entropy = cjpeg_entropy_install(&library);
    size_t line = (size_t)library.output_width * library.output_components;
    outcome->pixels = calloc(library.output_height, line);
    if (outcome->pixels == NULL) cjpeg_report_fail(&report, cjpeg_failure_memory, "There is no memory");
    if (way.skips_and_crops) {
        JDIMENSION start = library.output_width / 3, width = library.output_width / 3 + 1;
        jpeg_crop_scanline(&library, &start, &width);
        JDIMENSION quarter = library.output_height / 4;
        jpeg_skip_scanlines(&library, quarter);
        read_lines(&library, outcome, quarter);
        jpeg_skip_scanlines(&library, quarter);
    }
    read_lines(&library, outcome, library.output_height);
    jpeg_finish_decompress(&library);
    outcome->warning_count = report.library.num_warnings;
    outcome->has_failed = false;
    jpeg_destroy_decompress(&library);
}
