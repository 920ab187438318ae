// SPDX-License-Identifier: Apache-2.0

#include "coefficients.h"
#include "output.h"

#include <stdlib.h>

// The number of rows of blocks to move between two counts of work.
#define ROWS_AT_ONCE 8

struct cjpeg_transformer {
    cjpeg_report report;
    struct jpeg_decompress_struct source;
    struct jpeg_compress_struct target;
    struct jpeg_progress_mgr reading;
    struct jpeg_progress_mgr writing;
    cjpeg_output output;
    cjpeg_prices prices;
    cjpeg_count count;
    void *context;
    int maximum_scans;
    /// The arrays of the result, if they differ from the arrays of the source.
    jvirt_barray_ptr arrays[MAX_COMPONENTS];
};

// MARK: Work

// Counts work. Does not return if the caller's limit is reached.
static void count_work(cjpeg_transformer *transformer, int64_t units) {
    if (transformer->count(transformer->context, units)) return;
    cjpeg_report_fail(&transformer->report, cjpeg_failure_stopped, "It was stopped");
}

static int64_t blocks_of_row(int components, jpeg_component_info *const *list) {
    int64_t blocks = 0;
    for (int index = 0; index < components; index++) {
        blocks += (int64_t)list[index]->width_in_blocks * list[index]->v_samp_factor;
    }
    return blocks;
}

// Ends an image in one scan at the marker behind the scan, as the decoder does. The data after the marker may be
// anything.
static void end_scan(cjpeg_transformer *transformer) {
    j_decompress_ptr source = &transformer->source;
    const uint8_t *next = source->src->next_input_byte;
    size_t count = source->src->bytes_in_buffer;
    bool is_behind_fill = false;
    if (source->unread_marker == 0 && !cjpeg_find_marker(&next, &count, &is_behind_fill)) {
        transformer->report.end_is_missing = true;
    }
    source->unread_marker = JPEG_EOI;
}

// The library calls it before it reads each row of blocks, and after the last one.
static void will_read(j_common_ptr library) {
    cjpeg_transformer *transformer = library->client_data;
    j_decompress_ptr source = &transformer->source;
    if (source->input_iMCU_row >= source->total_iMCU_rows && !jpeg_has_multiple_scans(source)) {
        end_scan(transformer);
        return;
    }
    if (source->input_scan_number > transformer->maximum_scans) {
        cjpeg_report_fail(&transformer->report, cjpeg_failure_scans, "It has too many scans");
    }
    int64_t blocks = blocks_of_row(source->comps_in_scan, source->cur_comp_info);
    const cjpeg_prices *prices = &transformer->prices;
    int64_t units = blocks * (source->arith_code ? prices->arithmetic_block : prices->block);
    if (source->restart_interval > 0) units += blocks / source->restart_interval * prices->restart;
    count_work(transformer, units);
}

// The library calls it before each row of blocks in each pass.
static void will_write(j_common_ptr library) {
    cjpeg_transformer *transformer = library->client_data;
    j_compress_ptr target = &transformer->target;
    int64_t blocks = blocks_of_row(target->comps_in_scan, target->cur_comp_info);
    count_work(transformer, blocks * transformer->prices.block);
}

// MARK: Life

cjpeg_transformer *cjpeg_transformer_create(cjpeg_prices prices, cjpeg_count count, void *context) {
    cjpeg_transformer *transformer = calloc(1, sizeof(*transformer));
    if (transformer == NULL) return NULL;
    transformer->prices = prices;
    transformer->count = count;
    transformer->context = context;
    transformer->source.err = cjpeg_report_prepare(&transformer->report);
    transformer->target.err = transformer->source.err;
    transformer->source.client_data = transformer;
    transformer->target.client_data = transformer;
    if (setjmp(transformer->report.escape)) {
        cjpeg_transformer_free(transformer);
        return NULL;
    }
    jpeg_create_decompress(&transformer->source);
    jpeg_create_compress(&transformer->target);
    transformer->reading.progress_monitor = will_read;
    transformer->writing.progress_monitor = will_write;
    transformer->source.progress = &transformer->reading;
    transformer->target.progress = &transformer->writing;
    cjpeg_output_prepare(&transformer->output, &transformer->target, &transformer->report);
    return transformer;
}

void cjpeg_transformer_free(cjpeg_transformer *transformer) {
    if (transformer == NULL) return;
    jpeg_destroy_compress(&transformer->target);
    jpeg_destroy_decompress(&transformer->source);
    free(transformer->output.bytes);
    free(transformer);
}

// MARK: Transform

static bool moves_blocks(const cjpeg_transform *transform) {
    return transform->swaps_sides || transform->reverses_columns || transform->reverses_rows || transform->left > 0
        || transform->top > 0;
}

// The sampling factors of a component in the result. A single component is not interleaved, so its stored factors do
// not count.
typedef struct sampling {
    JDIMENSION across;
    JDIMENSION down;
} sampling;

static int component_count(const cjpeg_transformer *transformer, const cjpeg_transform *transform) {
    return transform->is_gray ? 1 : transformer->source.num_components;
}

static sampling sampling_of(const cjpeg_transformer *transformer, const cjpeg_transform *transform, int index) {
    if (component_count(transformer, transform) == 1) return (sampling){1, 1};
    const jpeg_component_info *component = &transformer->source.comp_info[index];
    sampling old = {(JDIMENSION)component->h_samp_factor, (JDIMENSION)component->v_samp_factor};
    return transform->swaps_sides ? (sampling){old.down, old.across} : old;
}

static sampling finest_sampling(const cjpeg_transformer *transformer, const cjpeg_transform *transform) {
    sampling finest = {1, 1};
    for (int index = 0; index < component_count(transformer, transform); index++) {
        sampling each = sampling_of(transformer, transform, index);
        if (each.across > finest.across) finest.across = each.across;
        if (each.down > finest.down) finest.down = each.down;
    }
    return finest;
}

static JDIMENSION rounded_up(JDIMENSION number, JDIMENSION step) {
    return (number + step - 1) / step * step;
}

// The library allocates its arrays together, before it reads coefficients.
static void request_arrays(cjpeg_transformer *transformer, const cjpeg_transform *transform) {
    j_decompress_ptr source = &transformer->source;
    sampling finest = finest_sampling(transformer, transform);
    for (int index = 0; index < component_count(transformer, transform); index++) {
        sampling each = sampling_of(transformer, transform, index);
        JDIMENSION units_across = rounded_up((JDIMENSION)transform->width, finest.across * 8) / (finest.across * 8);
        JDIMENSION units_down = rounded_up((JDIMENSION)transform->height, finest.down * 8) / (finest.down * 8);
        transformer->arrays[index] = source->mem->request_virt_barray(
            (j_common_ptr)source, JPOOL_IMAGE, FALSE, units_across * each.across, units_down * each.down, each.down);
    }
}

static void check_source(cjpeg_transformer *transformer, const cjpeg_transform *transform) {
    const struct jpeg_decompress_struct *source = &transformer->source;
    if ((int)source->image_width != transform->source_width || (int)source->image_height != transform->source_height
        || source->num_components != transform->source_components) {
        cjpeg_report_fail(&transformer->report, cjpeg_failure_corrupt, "It has more than one frame header");
    }
    const jpeg_component_info *first = &source->comp_info[0];
    bool can_be_gray = source->num_components == 1
        || (source->jpeg_color_space == JCS_YCbCr && first->h_samp_factor == source->max_h_samp_factor
            && first->v_samp_factor == source->max_v_samp_factor);
    if (transform->is_gray && !can_be_gray) {
        cjpeg_report_fail(
            &transformer->report, cjpeg_failure_unsupported, "Its colours have no component of brightness");
    }
    // Only files with several scans can have so many blocks (T.81, B.2.3). The result begins with one scan for all
    // components.
    int blocks = 0;
    for (int index = 0; index < component_count(transformer, transform); index++) {
        sampling each = sampling_of(transformer, transform, index);
        blocks += (int)(each.across * each.down);
    }
    if (blocks > C_MAX_BLOCKS_IN_MCU) {
        cjpeg_report_fail(
            &transformer->report, cjpeg_failure_unsupported, "Its components have too many blocks for one scan");
    }
}

static void swap_sides_of_tables(j_compress_ptr target) {
    for (int number = 0; number < NUM_QUANT_TBLS; number++) {
        JQUANT_TBL *table = target->quant_tbl_ptrs[number];
        if (table == NULL) continue;
        for (int row = 0; row < 8; row++) {
            for (int column = 0; column < row; column++) {
                UINT16 value = table->quantval[row * 8 + column];
                table->quantval[row * 8 + column] = table->quantval[column * 8 + row];
                table->quantval[column * 8 + row] = value;
            }
        }
    }
}

static void configure(cjpeg_transformer *transformer, const cjpeg_transform *transform) {
    j_compress_ptr target = &transformer->target;
    jpeg_copy_critical_parameters(&transformer->source, target);
    if (transform->is_gray && target->num_components > 1) {
        int table = target->comp_info[0].quant_tbl_no;
        jpeg_set_colorspace(target, JCS_GRAYSCALE);
        target->comp_info[0].quant_tbl_no = table;
    }
    for (int index = 0; index < target->num_components; index++) {
        sampling each = sampling_of(transformer, transform, index);
        target->comp_info[index].h_samp_factor = (int)each.across;
        target->comp_info[index].v_samp_factor = (int)each.down;
    }
    if (transform->swaps_sides) swap_sides_of_tables(target);
    target->image_width = (JDIMENSION)transform->width;
    target->image_height = (JDIMENSION)transform->height;
#if JPEG_LIB_VERSION >= 70
    target->jpeg_width = target->image_width;
    target->jpeg_height = target->image_height;
#endif
    target->optimize_coding = transform->has_own_tables;
    if (transform->is_progressive) jpeg_simple_progression(target);
}

static JDIMENSION blocks_across(JDIMENSION size, JDIMENSION each, JDIMENSION finest) {
    return rounded_up(size * each, finest * 8) / (finest * 8);
}

static void move_blocks(cjpeg_transformer *transformer, const cjpeg_transform *transform, jvirt_barray_ptr *from) {
    sampling finest = finest_sampling(transformer, transform);
    JDIMENSION width = transformer->source.image_width, height = transformer->source.image_height;
    if (transform->swaps_sides) {
        width = transformer->source.image_height;
        height = transformer->source.image_width;
    }
    for (int index = 0; index < transformer->target.num_components; index++) {
        sampling each = sampling_of(transformer, transform, index);
        cjpeg_turn turn = {
            .swaps_sides = transform->swaps_sides,
            .reverses_columns = transform->reverses_columns,
            .reverses_rows = transform->reverses_rows,
            .columns = width / (finest.across * 8) * each.across,
            .rows = height / (finest.down * 8) * each.down,
            .left = (JDIMENSION)transform->left * each.across,
            .top = (JDIMENSION)transform->top * each.down,
        };
        JDIMENSION across = blocks_across((JDIMENSION)transform->width, each.across, finest.across);
        JDIMENSION down = blocks_across((JDIMENSION)transform->height, each.down, finest.down);
        jvirt_barray_ptr to = transformer->arrays[index];
        for (JDIMENSION row = 0; row < down; row += ROWS_AT_ONCE) {
            JDIMENSION count = down - row < ROWS_AT_ONCE ? down - row : ROWS_AT_ONCE;
            // Moving a block costs about a quarter of coding it.
            count_work(transformer, (int64_t)count * across * transformer->prices.block / 4);
            cjpeg_coefficients_turn(&transformer->source, &turn, from[index], to, row, count, across);
        }
        // The library requires the rows that complete the last unit, but does not read their contents.
        j_common_ptr library = (j_common_ptr)&transformer->source;
        for (JDIMENSION row = down; row < rounded_up(down, each.down); row++) {
            library->mem->access_virt_barray(library, to, row, 1, TRUE);
        }
    }
}

// Damaged data may have coefficients without a code in the standard tables, and the library does not check for them. If
// it builds its own tables, it checks and fails.
static bool fits_standard_tables(
    cjpeg_transformer *transformer, const cjpeg_transform *transform, jvirt_barray_ptr *arrays) {
    j_decompress_ptr source = &transformer->source;
    sampling finest = finest_sampling(transformer, transform);
    for (int index = 0; index < transformer->target.num_components; index++) {
        sampling each = sampling_of(transformer, transform, index);
        JDIMENSION across = blocks_across((JDIMENSION)transform->width, each.across, finest.across);
        JDIMENSION down = blocks_across((JDIMENSION)transform->height, each.down, finest.down);
        for (JDIMENSION row = 0; row < down; row++) {
            JBLOCKARRAY rows = source->mem->access_virt_barray((j_common_ptr)source, arrays[index], row, 1, FALSE);
            if (!cjpeg_fit_standard_tables(rows[0][0], across)) return false;
        }
    }
    return true;
}

cjpeg_status cjpeg_transformer_run(
    cjpeg_transformer *transformer, const uint8_t *bytes, size_t count, const cjpeg_transform *transform) {
    j_decompress_ptr source = &transformer->source;
    j_compress_ptr target = &transformer->target;
    if (setjmp(transformer->report.escape)) return cjpeg_status_failed;
    transformer->maximum_scans = transform->maximum_scans;
    jpeg_mem_src(source, bytes, count);
    jpeg_read_header(source, TRUE);
    check_source(transformer, transform);
    bool moves = moves_blocks(transform);
    if (moves) request_arrays(transformer, transform);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(source);
    if (transformer->report.end_is_missing && !transform->allows_truncated) {
        cjpeg_report_fail(&transformer->report, cjpeg_failure_corrupt, "It ends too early");
    }
    configure(transformer, transform);
    if (moves) {
        move_blocks(transformer, transform, arrays);
        arrays = transformer->arrays;
    }
    if (!target->optimize_coding && !transform->is_progressive) {
        target->optimize_coding = !fits_standard_tables(transformer, transform, arrays);
    }
    cjpeg_output_begin(&transformer->output, count + count / 8, transform->maximum_bytes);
    jpeg_write_coefficients(target, arrays);
    jpeg_finish_compress(target);
    return cjpeg_status_done;
}

uint8_t *cjpeg_transformer_take(cjpeg_transformer *transformer, size_t *count) {
    return cjpeg_output_take(&transformer->output, count);
}

// MARK: Report

bool cjpeg_transformer_end_is_missing(const cjpeg_transformer *transformer) {
    return transformer->report.end_is_missing;
}

unsigned cjpeg_transformer_damage(const cjpeg_transformer *transformer) {
    return transformer->report.damage | (transformer->report.end_is_missing ? cjpeg_damage_missing_data : 0);
}

cjpeg_failure cjpeg_transformer_failure(const cjpeg_transformer *transformer) {
    return transformer->report.failure;
}

const char *cjpeg_transformer_message(const cjpeg_transformer *transformer) {
    return transformer->report.message;
}
