// SPDX-License-Identifier: Apache-2.0

#ifndef CGIF_H
#define CGIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The LZW codes of GIF89a, appendix F. A code is a number of 3 to 12 bits that stands for a string of colour indices.
// This code is in C because a Swift debug build would be hundreds of times slower. The caller owns all memory, and
// every function documents how much it reads and writes.

// Writing

/// The number of slots in a writer's hash table.
#define cgif_slot_count 8192
/// The maximum number of bytes that `cgif_finish` writes.
#define cgif_most_last_bytes 264

/// Encodes colour indices as codes, and codes as blocks.
struct cgif_writer {
    /// A hash table of `cgif_slot_count` slots. The upper 20 bits hold the code of a string and the next index, the
    /// lower 12 bits the code of both together.
    uint32_t *_Nullable slots;
    uint32_t minimum_code_size, code_size, next_code;
    /// The code of the indices that no code was written for yet, or -1 before the first index.
    int32_t prefix;
    uint32_t bits, bit_count;
    /// The number of bytes in the block that is not full yet.
    uint32_t block_count;
    uint8_t block[256];
};

/// Begins an image whose indices have `minimum_code_size` bits, 2 to 8.
void cgif_begin(struct cgif_writer *_Nonnull writer, uint32_t *_Nonnull slots, uint32_t minimum_code_size);

/// Returns the maximum number of bytes that `cgif_write` writes for `count` indices.
size_t cgif_bound(size_t count);

/// Writes the complete blocks of `count` more indices to `target`, which has `cgif_bound(count)` bytes.
///
/// Starts a new code table when the current one is full. Returns the number of bytes written.
size_t cgif_write(
    struct cgif_writer *_Nonnull writer, const uint8_t *_Nonnull indices, size_t count, uint8_t *_Nonnull target);

/// Writes the last blocks and the end of the image to `target`. Returns the number of bytes written.
size_t cgif_finish(struct cgif_writer *_Nonnull writer, uint8_t *_Nonnull target);

// Reading

/// The number of entries in a reader's table: one for each code, and one for the string that the last code begins.
#define cgif_entry_count 4097
/// The number of bytes that a reader may write beyond its threshold: the longest string and two copied pieces.
#define cgif_window_slack 4128

/// The reason why a reader stopped.
enum cgif_status {
    /// The input has no more bytes.
    cgif_needs_bytes,
    /// The position has reached the threshold.
    cgif_is_full,
    /// A code clears the table.
    cgif_clears,
    /// The image is complete.
    cgif_has_ended,
    /// A code names a string that does not exist.
    cgif_is_damaged,
};

/// Decodes codes into colour indices.
///
/// The output itself serves as the code table, because each string is an earlier part of the output and one more index.
struct cgif_reader {
    /// The output. It has `cgif_window_slack` bytes behind every threshold.
    uint8_t *_Nonnull window;
    /// For each code, the offset of its string in the window (upper 48 bits) and its length (lower 16 bits). Length 0
    /// marks the clear code and the end code.
    uint64_t *_Nonnull entries;
    /// The offset of the next index, and the offset at which reading stops.
    size_t position, threshold;
    /// The offset behind the last string of the full table.
    size_t table_end;
    /// The maximum distance of the threshold from `table_end` once the table is full.
    size_t portion;
    /// The codes below it name complete strings. It is itself the end code, or names the string that the next index
    /// completes.
    uint32_t limit;
    uint32_t clear_code, code_size;
    uint64_t bits;
    uint32_t bit_count;
};

/// Reads codes from `*cursor`, and advances it past the bytes it has read.
///
/// After `cgif_is_full` or `cgif_clears`, the caller sets the threshold and continues.
enum cgif_status cgif_read(
    struct cgif_reader *_Nonnull reader, const uint8_t *_Nonnull *_Nonnull cursor, const uint8_t *_Nonnull end);

// Pixels

/// Writes the pixels of `count` indices, with 3 or 4 bytes each.
///
/// - palette: 256 pixels, the lowest byte first. Zero is transparent.
/// - is_laid_over: whether a pixel of 4 bytes keeps its old value if the new one is transparent.
void cgif_expand(
    const uint32_t *_Nonnull palette, const uint8_t *_Nonnull indices, size_t count, uint8_t *_Nonnull target,
    size_t bytes_per_pixel, bool is_laid_over);

#endif
