#ifndef CGIF_H
#define CGIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The codes of GIF89a, appendix F: strings of colour indices as numbers of 3 to 12 bits. In C, so that debug builds are
// not hundreds of times slower. All memory is the caller's, and every function says how much it reads and writes.

// Writing

/// The places of a writer's hash table.
#define cgif_slot_count 8192
/// The most bytes that `cgif_finish` writes.
#define cgif_most_last_bytes 264

/// Turns colour indices into codes, and codes into blocks.
struct cgif_writer {
    /// `cgif_slot_count`: the code of a string and the index behind it (above), and the code of both (12 bits).
    uint32_t *_Nullable slots;
    uint32_t minimum_code_size, code_size, next_code;
    /// The code of the indices that no code was written for; -1 before the first index.
    int32_t prefix;
    uint32_t bits, bit_count;
    /// The bytes of the block that is not full.
    uint32_t block_count;
    uint8_t block[256];
};

/// Begins an image whose indices have `minimum_code_size` bits, 2 to 8.
void cgif_begin(struct cgif_writer *_Nonnull writer, uint32_t *_Nonnull slots, uint32_t minimum_code_size);

/// The most bytes that `cgif_write` writes for so many indices.
size_t cgif_bound(size_t count);

/// Writes the complete blocks of `count` more indices to `target`, which has `cgif_bound(count)` bytes.
///
/// The code table is begun anew when it is full. Returns the number of bytes.
size_t cgif_write(
    struct cgif_writer *_Nonnull writer, const uint8_t *_Nonnull indices, size_t count, uint8_t *_Nonnull target);

/// Writes the last blocks and the end of the image to `target`; returns the number of bytes.
size_t cgif_finish(struct cgif_writer *_Nonnull writer, uint8_t *_Nonnull target);

// Reading

/// The entries of a reader's table: one for each code, and one for the string that the last code begins.
#define cgif_entry_count 4097
/// The bytes that a reader may write behind the end of its window: the longest string, and two pieces of copying.
#define cgif_window_slack 4128

/// Why a reader stopped.
enum cgif_status {
    /// The bytes are used up.
    cgif_needs_bytes,
    /// The position has reached the threshold.
    cgif_is_full,
    /// A code begins the table anew.
    cgif_clears,
    /// The image ends.
    cgif_has_ended,
    /// A code names a string that does not exist.
    cgif_is_damaged,
};

/// Turns codes into colour indices.
///
/// The output is the table itself: each string is an earlier part of the output, one index longer.
struct cgif_reader {
    /// The output; it has `cgif_window_slack` bytes behind every threshold.
    uint8_t *_Nonnull window;
    /// For each code, where its string begins in the window (above) and its length (16 bits), of which none marks the
    /// two codes that name no string.
    uint64_t *_Nonnull entries;
    /// The position of the next index, and the position at which reading stops.
    size_t position, threshold;
    /// How far the window may be read on once the table is full: behind its last string.
    size_t table_end;
    /// The distance of the threshold behind the last string of a full table.
    size_t portion;
    /// Codes below it name whole strings; it names the string that the next index completes, or is the end code.
    uint32_t limit;
    uint32_t clear_code, code_size;
    uint64_t bits;
    uint32_t bit_count;
};

/// Reads codes from `*cursor` on, and moves it behind what was read.
///
/// After `cgif_is_full` and `cgif_clears` the caller sets the threshold, and reads on.
enum cgif_status cgif_read(
    struct cgif_reader *_Nonnull reader, const uint8_t *_Nonnull *_Nonnull cursor, const uint8_t *_Nonnull end);

// Pixels

/// Writes the pixels of `count` indices, of 3 or 4 bytes each.
///
/// - palette: 256 pixels, the lowest byte first; zero is transparent.
/// - is_laid_over: whether a pixel of 4 bytes stays if the new one is transparent.
void cgif_expand(
    const uint32_t *_Nonnull palette, const uint8_t *_Nonnull indices, size_t count, uint8_t *_Nonnull target,
    size_t bytes_per_pixel, bool is_laid_over);

#endif
