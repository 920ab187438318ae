#ifndef CJPEG_H
#define CJPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// libjpeg for Swift. libjpeg reports errors by longjmp; here no jump leaves a function of this
// header, and none crosses a frame of its caller: every function returns a status instead.

/// How a call ended.
typedef enum __attribute__((enum_extensibility(closed))) cjpeg_status {
    /// It did what it was asked to do.
    cjpeg_status_done,
    /// It needs more input than has been lent.
    cjpeg_status_suspended,
    /// It has done its share of the work; call it again.
    cjpeg_status_paused,
    /// It failed for good; the message says why. Nothing but freeing makes sense afterwards.
    cjpeg_status_failed,
} cjpeg_status;

/// The kinds of failure.
typedef enum __attribute__((enum_extensibility(closed))) cjpeg_failure {
    cjpeg_failure_none,
    /// The data breaks the rules of the format.
    cjpeg_failure_corrupt,
    /// The data uses what the library lacks.
    cjpeg_failure_unsupported,
    /// The system refused memory.
    cjpeg_failure_memory,
    /// There are more scans than allowed.
    cjpeg_failure_scans,
    /// The result has more bytes than allowed.
    cjpeg_failure_size,
    /// The caller asked to stop.
    cjpeg_failure_stopped,
} cjpeg_failure;

/// Damage within the data of an image that libjpeg warns of and goes on from; flags.
typedef enum cjpeg_damage {
    /// Bits that are no code of their table.
    cjpeg_damage_invalid_codes = 1 << 0,
    /// The data of a scan end before its blocks do.
    cjpeg_damage_missing_data = 1 << 1,
    /// Restart markers are missing, or out of order.
    cjpeg_damage_lost_restarts = 1 << 2,
    /// A scan does not continue what the scans before it began.
    cjpeg_damage_disordered_scans = 1 << 3,
} cjpeg_damage;

// MARK: Decoding

/// A decoder; used by one thread at a time.
typedef struct cjpeg_decoder cjpeg_decoder;

/// The values of the markers up to the first scan.
typedef struct cjpeg_image {
    int width;
    int height;
    int components;
    /// Whether the image is stored in several scans, and held as coefficients meanwhile.
    bool is_multi_scan;
} cjpeg_image;

/// Told what is about to be done, in units of work; false stops the decoder.
typedef bool (*cjpeg_count)(void *_Nonnull context, int64_t units);

/// The prices of parts in units of work.
typedef struct cjpeg_prices {
    /// The price of an encoded byte.
    int byte;
    /// The price of a block of 64 samples in each scan that covers it, and its price with arithmetic coding.
    int block;
    int arithmetic_block;
    /// The price of a restart interval.
    int restart;
} cjpeg_prices;

/// Returns a decoder, or NULL without memory.
///
/// `count` is called with `context` now and then during long calls.
cjpeg_decoder *_Nullable cjpeg_decoder_create(cjpeg_prices prices, cjpeg_count _Nonnull count, void *_Nonnull context);
void cjpeg_decoder_free(cjpeg_decoder *_Nullable decoder);

/// Lends the bytes that follow the ones already used; they must stay until the next loan.
///
/// `is_complete` says that no more will come: where they end, an end marker is made up.
void cjpeg_decoder_lend(
    cjpeg_decoder *_Nonnull decoder, const uint8_t *_Nullable bytes, size_t count, bool is_complete);

/// From the offset of the first byte to that behind the last one.
typedef struct cjpeg_range {
    size_t start;
    size_t end;
} cjpeg_range;

/// Leaves scans out of a complete loan, before any of it is read: they lie at `ranges`, the first one first.
///
/// The image is given out as if nothing were missing. False without memory.
bool cjpeg_decoder_leave_out(cjpeg_decoder *_Nonnull decoder, const cjpeg_range *_Nonnull ranges, size_t count);

/// The lent bytes that were not used yet: to be lent again, followed by new ones.
size_t cjpeg_decoder_unread(const cjpeg_decoder *_Nonnull decoder);

/// Lets an entropy decoder of our own read the Huffman codes where it can, and `smallest` bytes or more of the loan are
/// left at the first scan: making its tables takes longer than it gains with fewer. The loan must be complete.
void cjpeg_decoder_allow_own_entropy(cjpeg_decoder *_Nonnull decoder, size_t smallest);

/// Whether it reads them; known once the decoder was started.
bool cjpeg_decoder_has_own_entropy(const cjpeg_decoder *_Nonnull decoder);

/// Reads up to the first scan. Done or suspended.
cjpeg_status cjpeg_decoder_read_header(cjpeg_decoder *_Nonnull decoder, cjpeg_image *_Nonnull image);

/// Says that `count` restart markers lie before what is lent next: as many as a part of the scan that was left out has.
///
/// Called when the header was read.
void cjpeg_decoder_pass_restarts(cjpeg_decoder *_Nonnull decoder, int count);

/// Begins to decode to a `divisor`-th (1, 2, 4, 8) of the size: gray, RGB, or CMYK as stored.
///
/// Done or suspended. The output's size and samples a pixel are returned.
cjpeg_status cjpeg_decoder_start(
    cjpeg_decoder *_Nonnull decoder, int divisor, int maximum_scans, int *_Nonnull width, int *_Nonnull height,
    int *_Nonnull components);

/// Takes in up to `steps` rows of blocks of a multi-scan image. Done at the end of the image.
cjpeg_status cjpeg_decoder_consume(cjpeg_decoder *_Nonnull decoder, int steps);

/// The scans of a multi-scan image that are there whole.
int cjpeg_decoder_completed_scans(const cjpeg_decoder *_Nonnull decoder);

/// Returns the end of the last whole scan, from the start of the present loan.
size_t cjpeg_decoder_completed_offset(const cjpeg_decoder *_Nonnull decoder);

/// Begins to give out rows of a multi-scan image as far as it is known; at least one scan must be complete.
cjpeg_status cjpeg_decoder_begin_output(cjpeg_decoder *_Nonnull decoder);
/// Ends what `cjpeg_decoder_begin_output` began.
cjpeg_status cjpeg_decoder_end_output(cjpeg_decoder *_Nonnull decoder);

/// Writes up to `count` rows to `base`, `stride` bytes apart, and adds their number to `*written`.
///
/// Done when all were written, else suspended or failed.
cjpeg_status cjpeg_decoder_read_rows(
    cjpeg_decoder *_Nonnull decoder, uint8_t *_Nonnull base, size_t stride, int count, int *_Nonnull written);

/// Whether the input ended before the image did; known at its last row.
///
/// An image in one scan ends with the marker behind the scan, whatever that is: libjpeg reads no further.
bool cjpeg_decoder_end_is_missing(cjpeg_decoder *_Nonnull decoder);
/// Looks for the marker that ends an image in one scan, whose last row was given out, and uses up the loan until there.
///
/// False while the marker is missing, or rows are.
bool cjpeg_decoder_find_end(cjpeg_decoder *_Nonnull decoder);
/// The damage that was found so far.
unsigned cjpeg_decoder_damage(const cjpeg_decoder *_Nonnull decoder);
cjpeg_failure cjpeg_decoder_failure(const cjpeg_decoder *_Nonnull decoder);
/// Returns the library's text about the failure.
const char *_Nonnull cjpeg_decoder_message(const cjpeg_decoder *_Nonnull decoder);

// MARK: Encoding

/// An encoder; used by one thread at a time.
typedef struct cjpeg_encoder cjpeg_encoder;

typedef struct cjpeg_settings {
    int width;
    int height;
    /// 1 for gray, 3 for RGB.
    int components;
    /// 1 to 100.
    int quality;
    bool is_progressive;
    /// Whether the Huffman tables are made for this image, in a second pass.
    bool has_own_tables;
    /// The groups of blocks (MCUs) between two restart markers; 0 for none.
    int restart_interval;
    /// Pixels for each colour sample, across and down: 1 or 2.
    int horizontal_subsampling;
    int vertical_subsampling;
    /// More bytes than this are a failure.
    size_t maximum_bytes;
} cjpeg_settings;

/// Returns an encoder, or NULL without memory.
///
/// `should_stop` is asked now and then during long calls.
cjpeg_encoder *_Nullable cjpeg_encoder_create(bool (*_Nonnull should_stop)(void));
void cjpeg_encoder_free(cjpeg_encoder *_Nullable encoder);

/// Begins an image. Any result that was not taken is dropped.
cjpeg_status cjpeg_encoder_start(cjpeg_encoder *_Nonnull encoder, const cjpeg_settings *_Nonnull settings);

/// Begins a marker segment with `count` bytes of content, before the first row.
cjpeg_status cjpeg_encoder_begin_segment(cjpeg_encoder *_Nonnull encoder, int marker, size_t count);
/// Writes bytes of the segment that was begun.
cjpeg_status cjpeg_encoder_write_segment(cjpeg_encoder *_Nonnull encoder, const uint8_t *_Nullable bytes, size_t count);

cjpeg_status cjpeg_encoder_write_rows(
    cjpeg_encoder *_Nonnull encoder, const uint8_t *_Nonnull base, size_t stride, int count);
cjpeg_status cjpeg_encoder_finish(cjpeg_encoder *_Nonnull encoder);

/// Hands over the finished bytes, which the caller frees with `free`.
uint8_t *_Nullable cjpeg_encoder_take(cjpeg_encoder *_Nonnull encoder, size_t *_Nonnull count);

cjpeg_failure cjpeg_encoder_failure(const cjpeg_encoder *_Nonnull encoder);
const char *_Nonnull cjpeg_encoder_message(const cjpeg_encoder *_Nonnull encoder);

#include "CJPEGTransformer.h"

#endif
