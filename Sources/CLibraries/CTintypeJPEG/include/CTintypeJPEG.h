// SPDX-License-Identifier: Apache-2.0

#ifndef CJPEG_H
#define CJPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Wraps libjpeg for Swift. libjpeg reports errors by longjmp. No jump leaves a function of this header or crosses a
// frame of its caller. Every function returns a status instead.

/// The result of a call.
typedef enum __attribute__((enum_extensibility(closed))) cjpeg_status {
    /// The call is complete.
    cjpeg_status_done,
    /// The call needs more input than the decoder was lent.
    cjpeg_status_suspended,
    /// The call has done its share of the work. Call it again to continue.
    cjpeg_status_paused,
    /// The call failed permanently. The message gives the reason, and the only valid next call frees the coder.
    cjpeg_status_failed,
} cjpeg_status;

/// The kinds of failure.
typedef enum __attribute__((enum_extensibility(closed))) cjpeg_failure {
    cjpeg_failure_none,
    /// The data breaks the rules of the format.
    cjpeg_failure_corrupt,
    /// The library does not support a feature that the data uses.
    cjpeg_failure_unsupported,
    /// Memory ran out.
    cjpeg_failure_memory,
    /// There are more scans than allowed.
    cjpeg_failure_scans,
    /// The result has more bytes than allowed.
    cjpeg_failure_size,
    /// The caller asked to stop.
    cjpeg_failure_stopped,
} cjpeg_failure;

/// Flags for damage in the data of an image after which libjpeg warns and continues.
typedef enum cjpeg_damage {
    /// Bits that match no code of their table.
    cjpeg_damage_invalid_codes = 1 << 0,
    /// The data of a scan ends before its blocks do.
    cjpeg_damage_missing_data = 1 << 1,
    /// Restart markers are missing, or out of order.
    cjpeg_damage_lost_restarts = 1 << 2,
    /// A scan does not continue the previous scans.
    cjpeg_damage_disordered_scans = 1 << 3,
} cjpeg_damage;

// MARK: Decoding

/// A decoder. Only one thread at a time may use it.
typedef struct cjpeg_decoder cjpeg_decoder;

/// The properties of an image from the markers up to the first scan.
typedef struct cjpeg_image {
    int width;
    int height;
    int components;
    /// Whether the image is stored in several scans. The decoder then holds its coefficients in memory.
    bool is_multi_scan;
} cjpeg_image;

/// A function that is called with the units of work that follow. It returns false to stop the decoder.
typedef bool (*cjpeg_count)(void *_Nonnull context, int64_t units);

/// The cost of each operation in units of work.
typedef struct cjpeg_prices {
    /// The cost of an encoded byte.
    int byte;
    /// The cost of a block of 64 samples in each scan that covers it, with Huffman and with arithmetic coding.
    int block;
    int arithmetic_block;
    /// The cost of a restart interval.
    int restart;
} cjpeg_prices;

/// Returns a decoder, or NULL if memory runs out.
///
/// Long calls regularly call `count` with `context`.
cjpeg_decoder *_Nullable cjpeg_decoder_create(cjpeg_prices prices, cjpeg_count _Nonnull count, void *_Nonnull context);
void cjpeg_decoder_free(cjpeg_decoder *_Nullable decoder);

/// Lends the decoder the bytes that follow the bytes it has used. They must stay valid until the next loan.
///
/// `is_complete` says that no more bytes will come. The decoder then adds an end marker if the bytes end without one.
void cjpeg_decoder_lend(
    cjpeg_decoder *_Nonnull decoder, const uint8_t *_Nullable bytes, size_t count, bool is_complete);

/// A range of bytes, from the offset of the first byte up to the offset behind the last one.
typedef struct cjpeg_range {
    size_t start;
    size_t end;
} cjpeg_range;

/// Skips the scans at `ranges`, which must be in ascending order, before the decoder reads any of a complete loan.
///
/// The decoder returns the image as if no scan were missing. Returns false if memory runs out.
bool cjpeg_decoder_leave_out(cjpeg_decoder *_Nonnull decoder, const cjpeg_range *_Nonnull ranges, size_t count);

/// Returns the number of lent bytes that are still unused. Lend them again, followed by new ones.
size_t cjpeg_decoder_unread(const cjpeg_decoder *_Nonnull decoder);

/// Allows the Huffman decoder of this package, if it supports the image and at least `smallest` bytes of the loan are
/// left at the first scan. With fewer bytes, building its tables takes longer than it saves. The loan must be complete.
void cjpeg_decoder_allow_own_entropy(cjpeg_decoder *_Nonnull decoder, size_t smallest);

/// Whether the Huffman decoder of this package is in use. Known after `cjpeg_decoder_start`.
bool cjpeg_decoder_has_own_entropy(const cjpeg_decoder *_Nonnull decoder);

/// Reads the markers up to the first scan. Returns done, suspended or failed.
cjpeg_status cjpeg_decoder_read_header(cjpeg_decoder *_Nonnull decoder, cjpeg_image *_Nonnull image);

/// Tells the decoder that `count` restart markers precede the next loan. They belong to a part of the scan that the
/// caller left out.
///
/// Call it after `cjpeg_decoder_read_header`.
void cjpeg_decoder_pass_restarts(cjpeg_decoder *_Nonnull decoder, int count);

/// Starts decoding at 1/`divisor` (1, 2, 4 or 8) of the full size, to gray, RGB, or CMYK as stored.
///
/// Returns done, suspended or failed, and sets the size of the output and its samples per pixel.
cjpeg_status cjpeg_decoder_start(
    cjpeg_decoder *_Nonnull decoder, int divisor, int maximum_scans, int *_Nonnull width, int *_Nonnull height,
    int *_Nonnull components);

/// Reads up to `steps` rows of blocks of a multi-scan image. Returns done at the end of the image.
cjpeg_status cjpeg_decoder_consume(cjpeg_decoder *_Nonnull decoder, int steps);

/// Returns the number of complete scans of a multi-scan image.
int cjpeg_decoder_completed_scans(const cjpeg_decoder *_Nonnull decoder);

/// Returns the offset of the end of the last complete scan in the current loan.
size_t cjpeg_decoder_completed_offset(const cjpeg_decoder *_Nonnull decoder);

/// Starts the output of a multi-scan image with its present detail. At least one scan must be complete.
cjpeg_status cjpeg_decoder_begin_output(cjpeg_decoder *_Nonnull decoder);
/// Ends the output that `cjpeg_decoder_begin_output` started.
cjpeg_status cjpeg_decoder_end_output(cjpeg_decoder *_Nonnull decoder);

/// Writes up to `count` rows to `base`, `stride` bytes apart, and adds their number to `*written`.
///
/// Returns done if it wrote all rows, otherwise suspended or failed.
cjpeg_status cjpeg_decoder_read_rows(
    cjpeg_decoder *_Nonnull decoder, uint8_t *_Nonnull base, size_t stride, int count, int *_Nonnull written);

/// Whether the input ended before the image did. Known at the image's last row.
///
/// An image in one scan ends with the marker behind the scan, whatever marker that is. libjpeg does not read further.
bool cjpeg_decoder_end_is_missing(cjpeg_decoder *_Nonnull decoder);
/// Searches for the marker that ends an image in one scan, and uses up the loan up to there.
///
/// Returns false until the last row has been read and the marker found.
bool cjpeg_decoder_find_end(cjpeg_decoder *_Nonnull decoder);
/// Returns the damage found so far, as flags of `cjpeg_damage`.
unsigned cjpeg_decoder_damage(const cjpeg_decoder *_Nonnull decoder);
cjpeg_failure cjpeg_decoder_failure(const cjpeg_decoder *_Nonnull decoder);
/// Returns the message of the failure.
const char *_Nonnull cjpeg_decoder_message(const cjpeg_decoder *_Nonnull decoder);

// MARK: Encoding

/// An encoder. Only one thread at a time may use it.
typedef struct cjpeg_encoder cjpeg_encoder;

typedef struct cjpeg_settings {
    int width;
    int height;
    /// 1 for gray, 3 for RGB.
    int components;
    /// 1 to 100.
    int quality;
    bool is_progressive;
    /// Whether a second pass optimises the Huffman tables for this image.
    bool has_own_tables;
    /// The number of MCUs (groups of blocks) between two restart markers, or 0 for no restart markers.
    int restart_interval;
    /// The number of pixels for each colour sample, across and down: 1 or 2.
    int horizontal_subsampling;
    int vertical_subsampling;
    /// The largest allowed result. A larger one is a failure.
    size_t maximum_bytes;
} cjpeg_settings;

/// Returns an encoder, or NULL if memory runs out.
///
/// Long calls regularly call `should_stop`, and stop if it returns true.
cjpeg_encoder *_Nullable cjpeg_encoder_create(bool (*_Nonnull should_stop)(void));
void cjpeg_encoder_free(cjpeg_encoder *_Nullable encoder);

/// Starts an image. Discards the previous result if the caller has not taken it.
cjpeg_status cjpeg_encoder_start(cjpeg_encoder *_Nonnull encoder, const cjpeg_settings *_Nonnull settings);

/// Starts a marker segment with `count` bytes of content. Call it before the first row.
cjpeg_status cjpeg_encoder_begin_segment(cjpeg_encoder *_Nonnull encoder, int marker, size_t count);
/// Writes bytes of the current segment.
cjpeg_status cjpeg_encoder_write_segment(cjpeg_encoder *_Nonnull encoder, const uint8_t *_Nullable bytes, size_t count);

cjpeg_status cjpeg_encoder_write_rows(
    cjpeg_encoder *_Nonnull encoder, const uint8_t *_Nonnull base, size_t stride, int count);
cjpeg_status cjpeg_encoder_finish(cjpeg_encoder *_Nonnull encoder);

/// Returns the finished bytes and transfers their ownership. The caller frees them with `free`.
uint8_t *_Nullable cjpeg_encoder_take(cjpeg_encoder *_Nonnull encoder, size_t *_Nonnull count);

cjpeg_failure cjpeg_encoder_failure(const cjpeg_encoder *_Nonnull encoder);
const char *_Nonnull cjpeg_encoder_message(const cjpeg_encoder *_Nonnull encoder);

#include "CJPEGTransformer.h"

#endif
