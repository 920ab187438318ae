#ifndef CPNGDEFLATE_H
#define CPNGDEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A deflate compressor for the scanlines of PNGs.
//
// zlib and libdeflate take every match of some length. In filtered photographs most matches of four or five bytes cost
// more bits than the bytes themselves, so files get larger and their making slower. This one takes a match only if it
// saves bits, and looks first for runs and for the scanline above.

/// A deflate stream that is being written.
typedef struct cpngdeflate cpngdeflate;

enum {
    /// The largest number of bytes that one call compresses.
    cpngdeflate_strip_limit = 64 << 10,
    /// The number of bytes that must stay in front of a strip, once there are so many.
    cpngdeflate_window = 32 << 10,
    /// Room for the output of one call: the tokens of a block that is not written yet take 6 bytes each at most, and
    /// the
    /// bytes of a strip two.
    cpngdeflate_output_limit = (6 * 24 << 10) + 2 * cpngdeflate_strip_limit + (4 << 10),
};

/// Returns a stream, or NULL without memory.
cpngdeflate *_Nullable cpngdeflate_begin(void);

/// Starts a stream, also one that was not ended.
///
/// - level: the effort, 0 to 9; 0 stores, 1 is ISA-L's.
/// - line_size: the bytes of a scanline with its filter byte; 0 for bytes that are no scanlines.
void cpngdeflate_start(cpngdeflate *_Nonnull stream, int level, size_t line_size);

/// Returns the memory of a stream to the system.
void cpngdeflate_end(cpngdeflate *_Nonnull stream);

/// Returns the bytes of memory that a stream takes at most.
size_t cpngdeflate_size(void);

/// Compresses a strip.
///
/// - bytes: the strip, with the bytes before it in front.
/// - history: how many of those there are; the bytes of all strips before, or at least the window.
/// - count: the bytes of the strip.
/// - is_last: whether the stream ends with it.
/// - output: room for `cpngdeflate_output_limit` bytes.
///
/// Returns the number of bytes that were written.
size_t cpngdeflate_add(
    cpngdeflate *_Nonnull stream, const uint8_t *_Nonnull bytes, size_t history, size_t count, bool is_last,
    uint8_t *_Nonnull output);

#endif
