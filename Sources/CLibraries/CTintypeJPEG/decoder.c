// SPDX-License-Identifier: Apache-2.0

#include "entropy.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <jerror.h>
// Part of Debian's package. It declares `eoi_reached`, which says whether the library reached the end of the image.
#define JPEG_INTERNALS
#include <jpegint.h>

// The number of rows in one call of the library, which fills 2 to 4 of them.
#define ROWS_AT_ONCE 16

// The number of bytes that the library receives at once from a complete loan, and the number between two counts of
// work.
#define BYTES_AT_ONCE (256 << 10)

// The number of bytes at the end of the file in which `scan_has_end` searches for a marker.
#define TAIL_SIZE (64 << 10)

struct cjpeg_decoder {
    cjpeg_report report;
    struct jpeg_decompress_struct library;
    struct jpeg_source_mgr source;
    cjpeg_prices prices;
    cjpeg_count count;
    void *context;
    /// The units of work for a row of blocks in the current scan.
    int64_t row_work;
    size_t loan_count;
    /// The lent bytes that the library has not received yet.
    const uint8_t *rest;
    size_t rest_count;
    /// The ranges of the loan to skip, and the number of ranges already skipped.
    cjpeg_range *gaps;
    size_t gap_count;
    size_t passed_gap_count;
    /// The number of bytes to skip in a segment that reaches beyond the loan.
    size_t still_to_skip;
    bool is_complete;
    /// Whether the entropy decoder of this package is allowed, and the smallest number of bytes for it.
    bool allows_own_entropy;
    size_t smallest_own_entropy;
    /// Whether the library is reading the end marker that this code added.
    bool is_past_end;
    int maximum_scans;
    int completed_scans;
    size_t completed_offset;
    /// The value of `eoi_reached` before the output pass.
    bool had_end;
    /// Whether the marker behind a single scan was found, and whether the last byte examined began a marker.
    bool has_scan_end;
    bool is_behind_fill;
};

// MARK: Source

static void init_source(j_decompress_ptr library) {
    (void)library;
}

// Counts work. Does not return if the caller's limit is reached.
static void count_work(cjpeg_decoder *decoder, int64_t units) {
    if (decoder->count(decoder->context, units)) return;
    cjpeg_report_fail(&decoder->report, cjpeg_failure_stopped, "It was stopped");
}

static void give(cjpeg_decoder *decoder, size_t count) {
    decoder->source.next_input_byte = decoder->rest;
    decoder->source.bytes_in_buffer = count;
    decoder->rest = count > 0 ? decoder->rest + count : decoder->rest;
    decoder->rest_count -= count;
}

// Returns the number of bytes up to the next gap or the end. Skips a gap that begins here.
static size_t next_piece(cjpeg_decoder *decoder) {
    while (decoder->passed_gap_count < decoder->gap_count) {
        const cjpeg_range *gap = &decoder->gaps[decoder->passed_gap_count];
        size_t here = decoder->loan_count - decoder->rest_count;
        if (here < gap->start) return gap->start - here;
        if (here < gap->end) {
            decoder->rest += gap->end - here;
            decoder->rest_count -= gap->end - here;
        }
        decoder->passed_gap_count++;
    }
    return decoder->rest_count;
}

static boolean fill_input_buffer(j_decompress_ptr library) {
    static const JOCTET end[] = {0xFF, JPEG_EOI};
    cjpeg_decoder *decoder = library->client_data;
    if (!decoder->is_complete) return FALSE;
    size_t piece = next_piece(decoder);
    if (piece > 0) {
        size_t count = piece < BYTES_AT_ONCE ? piece : BYTES_AT_ONCE;
        count_work(decoder, (int64_t)count * decoder->prices.byte);
        give(decoder, count);
        return TRUE;
    }
    WARNMS(library, JWRN_JPEG_EOF);
    decoder->is_past_end = true;
    decoder->source.next_input_byte = end;
    decoder->source.bytes_in_buffer = sizeof(end);
    return TRUE;
}

static void skip_input_data(j_decompress_ptr library, long count) {
    cjpeg_decoder *decoder = library->client_data;
    if (count <= 0) return;
    size_t here = decoder->source.bytes_in_buffer;
    size_t step = (size_t)count < here ? (size_t)count : here;
    decoder->source.next_input_byte += step;
    decoder->source.bytes_in_buffer -= step;
    size_t left = (size_t)count - step;
    size_t behind = left < decoder->rest_count ? left : decoder->rest_count;
    if (behind > 0) {
        decoder->rest += behind;
        decoder->rest_count -= behind;
    }
    decoder->still_to_skip = left - behind;
}

static void term_source(j_decompress_ptr library) {
    (void)library;
}

void cjpeg_decoder_lend(cjpeg_decoder *decoder, const uint8_t *bytes, size_t count, bool is_complete) {
    size_t skipped = decoder->still_to_skip < count ? decoder->still_to_skip : count;
    decoder->still_to_skip -= skipped;
    decoder->loan_count = count;
    decoder->is_complete = is_complete;
    decoder->rest = bytes == NULL ? NULL : bytes + skipped;
    decoder->rest_count = count - skipped;
    decoder->gap_count = 0;
    // If the loan is incomplete, the library suspends and returns to an earlier position. So it receives all bytes at
    // once.
    give(decoder, is_complete ? 0 : decoder->rest_count);
}

bool cjpeg_decoder_leave_out(cjpeg_decoder *decoder, const cjpeg_range *ranges, size_t count) {
    cjpeg_range *gaps = calloc(count, sizeof(*gaps));
    if (gaps == NULL) return false;
    memcpy(gaps, ranges, count * sizeof(*gaps));
    free(decoder->gaps);
    decoder->gaps = gaps;
    decoder->gap_count = count;
    decoder->passed_gap_count = 0;
    return true;
}

size_t cjpeg_decoder_unread(const cjpeg_decoder *decoder) {
    return decoder->is_past_end ? 0 : decoder->source.bytes_in_buffer + decoder->rest_count;
}

// MARK: Life

cjpeg_decoder *cjpeg_decoder_create(cjpeg_prices prices, cjpeg_count count, void *context) {
    cjpeg_decoder *decoder = calloc(1, sizeof(*decoder));
    if (decoder == NULL) return NULL;
    decoder->prices = prices;
    decoder->count = count;
    decoder->context = context;
    decoder->library.err = cjpeg_report_prepare(&decoder->report);
    decoder->library.client_data = decoder;
    if (setjmp(decoder->report.escape)) {
        cjpeg_decoder_free(decoder);
        return NULL;
    }
    jpeg_create_decompress(&decoder->library);
    decoder->source.init_source = init_source;
    decoder->source.fill_input_buffer = fill_input_buffer;
    decoder->source.skip_input_data = skip_input_data;
    decoder->source.resync_to_restart = jpeg_resync_to_restart;
    decoder->source.term_source = term_source;
    decoder->library.src = &decoder->source;
    return decoder;
}

void cjpeg_decoder_free(cjpeg_decoder *decoder) {
    if (decoder == NULL) return;
    jpeg_destroy_decompress(&decoder->library);
    free(decoder->gaps);
    free(decoder);
}

// MARK: Decoding

cjpeg_status cjpeg_decoder_read_header(cjpeg_decoder *decoder, cjpeg_image *image) {
    j_decompress_ptr library = &decoder->library;
    if (setjmp(decoder->report.escape)) return cjpeg_status_failed;
    if (jpeg_read_header(library, TRUE) == JPEG_SUSPENDED) return cjpeg_status_suspended;
    image->width = (int)library->image_width;
    image->height = (int)library->image_height;
    image->components = library->num_components;
    image->is_multi_scan = jpeg_has_multiple_scans(library);
    return cjpeg_status_done;
}

void cjpeg_decoder_pass_restarts(cjpeg_decoder *decoder, int count) {
    decoder->library.marker->next_restart_num = count & 7;
}

static J_COLOR_SPACE output_space(const cjpeg_decoder *decoder) {
    switch (decoder->library.jpeg_color_space) {
    case JCS_GRAYSCALE: return JCS_GRAYSCALE;
    case JCS_YCbCr:
    case JCS_RGB: return JCS_RGB;
    case JCS_CMYK:
    case JCS_YCCK: return JCS_CMYK;
    default: return JCS_UNKNOWN;
    }
}

// Requests huge pages for the coefficients. The first access to a small page costs more than decoding its contents.
static void advise_huge_pages(j_decompress_ptr library) {
    const uintptr_t page = 4096;
    jvirt_barray_ptr *arrays = library->coef->coef_arrays;
    if (arrays == NULL) return;
    for (int index = 0; index < library->num_components; index++) {
        const jpeg_component_info *component = &library->comp_info[index];
        size_t across = component->width_in_blocks, down = component->height_in_blocks;
        size_t size = across * down * sizeof(JBLOCK);
        // Larger arrays are not contiguous.
        if (size < 4 << 20 || size > 900000000) continue;
        JBLOCKARRAY rows = library->mem->access_virt_barray((j_common_ptr)library, arrays[index], 0, 1, TRUE);
        uintptr_t start = ((uintptr_t)rows[0] + page - 1) / page * page;
        uintptr_t end = ((uintptr_t)rows[0] + size) / page * page;
        madvise((void *)start, end - start, MADV_HUGEPAGE);
    }
}

// Records the work of the new scan for each row of blocks of the whole image.
static void note_work_of_scan(cjpeg_decoder *decoder) {
    j_decompress_ptr library = &decoder->library;
    int64_t blocks = 0;
    for (int index = 0; index < library->comps_in_scan; index++) {
        const jpeg_component_info *component = library->cur_comp_info[index];
        blocks += (int64_t)component->width_in_blocks * component->v_samp_factor;
    }
    int64_t units = blocks * (library->arith_code ? decoder->prices.arithmetic_block : decoder->prices.block);
    if (library->restart_interval > 0) units += blocks / library->restart_interval * decoder->prices.restart;
    decoder->row_work = units;
}

// Whether a marker certainly ends the scan. Without one, the two decoders would notice the end of the input at
// different bytes.
static bool scan_has_end(const cjpeg_decoder *decoder) {
    size_t count = cjpeg_decoder_unread(decoder);
    if (count > TAIL_SIZE) count = TAIL_SIZE;
    const uint8_t *end = decoder->rest + decoder->rest_count, *start = end - count;
    while (count >= 2) {
        const uint8_t *found = memrchr(start, 0xFF, count - 1);
        if (found == NULL) return false;
        // All these markers end a scan, except restart markers. After a damaged restart, the library skips markers
        // below 0xC0.
        if (found[1] >= 0xC0 && found[1] < 0xFF && (found[1] < 0xD0 || found[1] > 0xD7)) return true;
        count = (size_t)(found - start) + 1;
    }
    return false;
}

void cjpeg_decoder_allow_own_entropy(cjpeg_decoder *decoder, size_t smallest) {
    decoder->allows_own_entropy = true;
    decoder->smallest_own_entropy = smallest;
}

bool cjpeg_decoder_has_own_entropy(const cjpeg_decoder *decoder) {
    return decoder->report.entropy != NULL;
}

cjpeg_status cjpeg_decoder_start(
    cjpeg_decoder *decoder, int divisor, int maximum_scans, int *width, int *height, int *components) {
    j_decompress_ptr library = &decoder->library;
    if (setjmp(decoder->report.escape)) return cjpeg_status_failed;
    library->out_color_space = output_space(decoder);
    if (library->out_color_space == JCS_UNKNOWN) {
        cjpeg_report_fail(
            &decoder->report, cjpeg_failure_unsupported, "Its components are not gray, RGB, YCbCr, CMYK or YCCK");
    }
    library->scale_num = 1;
    library->scale_denom = (unsigned)divisor;
    library->dct_method = JDCT_ISLOW;
    library->do_fancy_upsampling = TRUE;
    // Skipped scans are missing on purpose, so the library must not smooth the blocks to make up for them.
    library->do_block_smoothing = decoder->gap_count == 0;
    library->buffered_image = jpeg_has_multiple_scans(library);
    decoder->maximum_scans = maximum_scans;
    if (!jpeg_start_decompress(library)) return cjpeg_status_suspended;
    if (library->buffered_image) advise_huge_pages(library);
    if (decoder->allows_own_entropy && decoder->is_complete
        && cjpeg_decoder_unread(decoder) >= decoder->smallest_own_entropy && scan_has_end(decoder)) {
        cjpeg_entropy_install(library);
    }
    note_work_of_scan(decoder);
    *width = (int)library->output_width;
    *height = (int)library->output_height;
    *components = library->output_components;
    return cjpeg_status_done;
}

static void note_completed_scan(cjpeg_decoder *decoder) {
    decoder->completed_scans = decoder->library.input_scan_number;
    size_t offset = decoder->loan_count - cjpeg_decoder_unread(decoder);
    // The library has already read the marker behind the scan.
    if (decoder->library.unread_marker != 0 && offset >= 2) offset -= 2;
    decoder->completed_offset = offset;
}

cjpeg_status cjpeg_decoder_consume(cjpeg_decoder *decoder, int steps) {
    j_decompress_ptr library = &decoder->library;
    if (setjmp(decoder->report.escape)) return cjpeg_status_failed;
    for (int step = 0; step < steps; step++) {
        switch (jpeg_consume_input(library)) {
        case JPEG_SUSPENDED: return cjpeg_status_suspended;
        case JPEG_REACHED_EOI: return cjpeg_status_done;
        case JPEG_REACHED_SOS:
            if (library->input_scan_number > decoder->maximum_scans) {
                cjpeg_report_fail(&decoder->report, cjpeg_failure_scans, "It has too many scans");
            }
            note_work_of_scan(decoder);
            break;
        case JPEG_SCAN_COMPLETED:
            note_completed_scan(decoder);
            count_work(decoder, decoder->row_work);
            break;
        default: count_work(decoder, decoder->row_work); break;
        }
    }
    return cjpeg_status_paused;
}

int cjpeg_decoder_completed_scans(const cjpeg_decoder *decoder) {
    return decoder->completed_scans;
}

size_t cjpeg_decoder_completed_offset(const cjpeg_decoder *decoder) {
    return decoder->completed_offset;
}

cjpeg_status cjpeg_decoder_begin_output(cjpeg_decoder *decoder) {
    j_decompress_ptr library = &decoder->library;
    // The library tries to read ahead of the output, and would suspend after the first scan. During the output, pretend
    // that the input has ended.
    decoder->had_end = library->inputctl->eoi_reached;
    if (setjmp(decoder->report.escape)) return cjpeg_status_failed;
    library->inputctl->eoi_reached = TRUE;
    return jpeg_start_output(library, decoder->completed_scans) ? cjpeg_status_done : cjpeg_status_suspended;
}

cjpeg_status cjpeg_decoder_end_output(cjpeg_decoder *decoder) {
    j_decompress_ptr library = &decoder->library;
    if (setjmp(decoder->report.escape)) return cjpeg_status_failed;
    boolean is_done = jpeg_finish_output(library);
    library->inputctl->eoi_reached = decoder->had_end;
    return is_done ? cjpeg_status_done : cjpeg_status_suspended;
}

cjpeg_status cjpeg_decoder_read_rows(cjpeg_decoder *decoder, uint8_t *base, size_t stride, int count, int *written) {
    j_decompress_ptr library = &decoder->library;
    if (setjmp(decoder->report.escape)) return cjpeg_status_failed;
    int start = *written;
    while (*written - start < count) {
        int left = count - (*written - start);
        JSAMPROW rows[ROWS_AT_ONCE];
        int offered = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        for (int row = 0; row < offered; row++) {
            rows[row] = base + (size_t)(*written - start + row) * stride;
        }
        int taken = (int)jpeg_read_scanlines(library, rows, (JDIMENSION)offered);
        if (taken == 0) return cjpeg_status_suspended;
        *written += taken;
    }
    return cjpeg_status_done;
}

// MARK: Report

bool cjpeg_decoder_find_end(cjpeg_decoder *decoder) {
    j_decompress_ptr library = &decoder->library;
    // The library's read-ahead depends on its buffers. So the search starts at its current position, and the next
    // marker counts.
    if (library->output_height == 0 || library->output_scanline < library->output_height) return false;
    if (library->unread_marker != 0) decoder->has_scan_end = true;
    if (decoder->has_scan_end || decoder->is_past_end) return decoder->has_scan_end && !decoder->is_past_end;
    const uint8_t *next = decoder->source.next_input_byte;
    size_t count = decoder->source.bytes_in_buffer + decoder->rest_count;
    if (count > 0) decoder->has_scan_end = cjpeg_find_marker(&next, &count, &decoder->is_behind_fill);
    decoder->source.next_input_byte = next;
    decoder->source.bytes_in_buffer = count;
    decoder->rest = next == NULL ? NULL : next + count;
    decoder->rest_count = 0;
    return decoder->has_scan_end;
}

bool cjpeg_decoder_end_is_missing(cjpeg_decoder *decoder) {
    j_decompress_ptr library = &decoder->library;
    bool is_out = library->output_height > 0 && library->output_scanline >= library->output_height;
    // With several scans, the library has read the whole input before it returns rows.
    if (is_out && !library->buffered_image && decoder->is_complete && !cjpeg_decoder_find_end(decoder)) {
        decoder->report.end_is_missing = true;
    }
    return decoder->report.end_is_missing;
}

unsigned cjpeg_decoder_damage(const cjpeg_decoder *decoder) {
    return decoder->report.damage | (decoder->report.end_is_missing ? cjpeg_damage_missing_data : 0);
}

cjpeg_failure cjpeg_decoder_failure(const cjpeg_decoder *decoder) {
    return decoder->report.failure;
}

const char *cjpeg_decoder_message(const cjpeg_decoder *decoder) {
    return decoder->report.message;
}
