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
    ccoefficients *picture = library->client_data;
    longjmp(picture->escape, 1);
}

static void output_message(j_common_ptr library) {
    (void)library;
}

ccoefficients *ccoefficients_read(const uint8_t *bytes, size_t count) {
    ccoefficients *picture = calloc(1, sizeof(*picture));
    if (picture == NULL) return NULL;
    picture->library.err = jpeg_std_error(&picture->report);
    picture->report.error_exit = error_exit;
    picture->report.output_message = output_message;
    picture->library.client_data = picture;
    if (setjmp(picture->escape)) {
        ccoefficients_free(picture);
        return NULL;
    }
    jpeg_create_decompress(&picture->library);
    jpeg_mem_src(&picture->library, bytes, count);
    jpeg_read_header(&picture->library, TRUE);
    picture->arrays = jpeg_read_coefficients(&picture->library);
    return picture;
}

void ccoefficients_free(ccoefficients *picture) {
    if (picture == NULL) return;
    jpeg_destroy_decompress(&picture->library);
    free(picture);
}

int ccoefficients_width(const ccoefficients *picture) {
    return (int)picture->library.image_width;
}

int ccoefficients_height(const ccoefficients *picture) {
    return (int)picture->library.image_height;
}

int ccoefficients_component_count(const ccoefficients *picture) {
    return picture->library.num_components;
}

int ccoefficients_color_space(const ccoefficients *picture) {
    return (int)picture->library.jpeg_color_space;
}

ccoefficients_component ccoefficients_component_at(const ccoefficients *picture, int index) {
    const jpeg_component_info *info = &picture->library.comp_info[index];
    ccoefficients_component component = {
        .horizontal = info->h_samp_factor,
        .vertical = info->v_samp_factor,
        .columns = (int)info->width_in_blocks,
        .rows = (int)info->height_in_blocks,
    };
    // A component that no scan has takes none along.
    const JQUANT_TBL *table = info->quant_table;
    if (table == NULL && info->quant_tbl_no >= 0 && info->quant_tbl_no < NUM_QUANT_TBLS) {
        table = picture->library.quant_tbl_ptrs[info->quant_tbl_no];
    }
    for (int place = 0; place < 64 && table != NULL; place++) component.table[place] = table->quantval[place];
    return component;
}

const int16_t *ccoefficients_row(ccoefficients *picture, int component, int row) {
    j_common_ptr library = (j_common_ptr)&picture->library;
    JBLOCKARRAY rows = library->mem->access_virt_barray(library, picture->arrays[component], (JDIMENSION)row, 1, FALSE);
    return rows[0][0];
}
