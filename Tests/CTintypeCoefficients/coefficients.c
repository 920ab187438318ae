// SPDX-License-Identifier: Apache-2.0

#include "CTintypeCoefficients.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

struct ccoefficients {
    struct jpeg_error_mgr report;
    struct jpeg_decompress_struct library;
    jvirt_barray_ptr *arrays;
    jmp_buf escape;
};

static void error_exit(j_common_ptr library) {
    ccoefficients *image = library->client_data;
    longjmp(image->escape, 1);
}

static void output_message(j_common_ptr library) {
    (void)library;
}

ccoefficients *ccoefficients_read(const uint8_t *bytes, size_t count) {
    ccoefficients *image = calloc(1, sizeof(*image));
    if (image == NULL) return NULL;
    image->library.err = jpeg_std_error(&image->report);
    image->report.error_exit = error_exit;
    image->report.output_message = output_message;
    image->library.client_data = image;
    if (setjmp(image->escape)) {
        ccoefficients_free(image);
        return NULL;
    }
    jpeg_create_decompress(&image->library);
    jpeg_mem_src(&image->library, bytes, count);
    jpeg_read_header(&image->library, TRUE);
    image->arrays = jpeg_read_coefficients(&image->library);
    return image;
}

void ccoefficients_free(ccoefficients *image) {
    if (image == NULL) return;
    jpeg_destroy_decompress(&image->library);
    free(image);
}

int ccoefficients_width(const ccoefficients *image) {
    return (int)image->library.image_width;
}

int ccoefficients_height(const ccoefficients *image) {
    return (int)image->library.image_height;
}

int ccoefficients_component_count(const ccoefficients *image) {
    return image->library.num_components;
}

int ccoefficients_color_space(const ccoefficients *image) {
    return (int)image->library.jpeg_color_space;
}

ccoefficients_component ccoefficients_component_at(const ccoefficients *image, int index) {
    const jpeg_component_info *info = &image->library.comp_info[index];
    ccoefficients_component component = {
        .horizontal = info->h_samp_factor,
        .vertical = info->v_samp_factor,
        .columns = (int)info->width_in_blocks,
        .rows = (int)info->height_in_blocks,
    };
    // A component without a scan does not have its own table.
    const JQUANT_TBL *table = info->quant_table;
    if (table == NULL && info->quant_tbl_no >= 0 && info->quant_tbl_no < NUM_QUANT_TBLS) {
        table = image->library.quant_tbl_ptrs[info->quant_tbl_no];
    }
    for (int place = 0; place < 64 && table != NULL; place++) component.table[place] = table->quantval[place];
    return component;
}

const int16_t *ccoefficients_row(ccoefficients *image, int component, int row) {
    j_common_ptr library = (j_common_ptr)&image->library;
    JBLOCKARRAY rows = library->mem->access_virt_barray(library, image->arrays[component], (JDIMENSION)row, 1, FALSE);
    return rows[0][0];
}
