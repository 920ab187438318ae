// SPDX-License-Identifier: Apache-2.0

#include "output.h"

#include <stdlib.h>

#include <jerror.h>

#define ROWS_AT_ONCE 16

struct cjpeg_encoder {
    cjpeg_report report;
    struct jpeg_compress_struct library;
    struct jpeg_progress_mgr progress;
    bool (*should_stop)(void);
    cjpeg_output output;
};

// The library calls it for each row of blocks, also in the passes after the last row of pixels.
static void progress_monitor(j_common_ptr library) {
    cjpeg_encoder *encoder = library->client_data;
    if (encoder->should_stop()) cjpeg_report_fail(&encoder->report, cjpeg_failure_stopped, "It was cancelled");
}

// MARK: Life

cjpeg_encoder *cjpeg_encoder_create(bool (*should_stop)(void)) {
    cjpeg_encoder *encoder = calloc(1, sizeof(*encoder));
    if (encoder == NULL) return NULL;
    encoder->should_stop = should_stop;
    encoder->library.err = cjpeg_report_prepare(&encoder->report);
    encoder->library.client_data = encoder;
    if (setjmp(encoder->report.escape)) {
        cjpeg_encoder_free(encoder);
        return NULL;
    }
    jpeg_create_compress(&encoder->library);
    cjpeg_output_prepare(&encoder->output, &encoder->library, &encoder->report);
    encoder->progress.progress_monitor = progress_monitor;
    encoder->library.progress = &encoder->progress;
    return encoder;
}

void cjpeg_encoder_free(cjpeg_encoder *encoder) {
    if (encoder == NULL) return;
    jpeg_destroy_compress(&encoder->library);
    free(encoder->output.bytes);
    free(encoder);
}

// MARK: Encoding

static void configure(j_compress_ptr library, const cjpeg_settings *settings) {
    library->image_width = (JDIMENSION)settings->width;
    library->image_height = (JDIMENSION)settings->height;
    library->input_components = settings->components;
    library->in_color_space = settings->components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(library);
    jpeg_set_quality(library, settings->quality, TRUE);
    library->dct_method = JDCT_ISLOW;
    library->optimize_coding = settings->has_own_tables;
    library->restart_interval = (unsigned)settings->restart_interval;
    if (settings->components == 3) {
        library->comp_info[0].h_samp_factor = settings->horizontal_subsampling;
        library->comp_info[0].v_samp_factor = settings->vertical_subsampling;
    }
    if (settings->is_progressive) jpeg_simple_progression(library);
}

cjpeg_status cjpeg_encoder_start(cjpeg_encoder *encoder, const cjpeg_settings *settings) {
    j_compress_ptr library = &encoder->library;
    if (setjmp(encoder->report.escape)) return cjpeg_status_failed;
    // Resets the encoder to its initial state, also after a failure.
    jpeg_abort_compress(library);
    encoder->report.failure = cjpeg_failure_none;
    // About the size of a photograph at quality 80. The buffer grows when it is full.
    size_t guess = (size_t)settings->width * (size_t)settings->height / 4;
    cjpeg_output_begin(&encoder->output, guess, settings->maximum_bytes);
    configure(library, settings);
    jpeg_start_compress(library, TRUE);
    return cjpeg_status_done;
}

cjpeg_status cjpeg_encoder_begin_segment(cjpeg_encoder *encoder, int marker, size_t count) {
    if (setjmp(encoder->report.escape)) return cjpeg_status_failed;
    jpeg_write_m_header(&encoder->library, marker, (unsigned)count);
    return cjpeg_status_done;
}

cjpeg_status cjpeg_encoder_write_segment(cjpeg_encoder *encoder, const uint8_t *bytes, size_t count) {
    if (setjmp(encoder->report.escape)) return cjpeg_status_failed;
    for (size_t index = 0; index < count; index++) jpeg_write_m_byte(&encoder->library, bytes[index]);
    return cjpeg_status_done;
}

cjpeg_status cjpeg_encoder_write_rows(cjpeg_encoder *encoder, const uint8_t *base, size_t stride, int count) {
    if (setjmp(encoder->report.escape)) return cjpeg_status_failed;
    for (int done = 0; done < count;) {
        JSAMPROW rows[ROWS_AT_ONCE];
        int offered = count - done < ROWS_AT_ONCE ? count - done : ROWS_AT_ONCE;
        // The library only reads the rows.
        for (int row = 0; row < offered; row++) rows[row] = (JSAMPROW)base + (size_t)(done + row) * stride;
        done += (int)jpeg_write_scanlines(&encoder->library, rows, (JDIMENSION)offered);
    }
    return cjpeg_status_done;
}

cjpeg_status cjpeg_encoder_finish(cjpeg_encoder *encoder) {
    if (setjmp(encoder->report.escape)) return cjpeg_status_failed;
    jpeg_finish_compress(&encoder->library);
    return cjpeg_status_done;
}

uint8_t *cjpeg_encoder_take(cjpeg_encoder *encoder, size_t *count) {
    return cjpeg_output_take(&encoder->output, count);
}

// MARK: Report

cjpeg_failure cjpeg_encoder_failure(const cjpeg_encoder *encoder) {
    return encoder->report.failure;
}

const char *cjpeg_encoder_message(const cjpeg_encoder *encoder) {
    return encoder->report.message;
}
