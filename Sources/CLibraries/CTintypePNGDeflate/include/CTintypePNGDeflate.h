// SPDX-License-Identifier: Apache-2.0

#ifndef CPNGDEFLATE_H
#define CPNGDEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A deflate compressor for the scanlines of PNGs.
//
// zlib and libdeflate accept every match above some length. In filtered photographs, most matches of four or five bytes
// cost more bits than the bytes themselves. They make files larger and compression slower. This compressor
// accepts a match only if it saves bits, and first looks for runs and for matches with the scanline above.

/// A deflate stream in progress.
typedef struct cpngdeflate cpngdeflate;

enum {
    /// The largest number of bytes that one call compresses.
    cpngdeflate_strip_limit = 64 << 10,
    /// The number of bytes that must precede a strip in memory, once the stream has so many.
    cpngdeflate_window = 32 << 10,
    /// The size of the output buffer for one call. Each token of an unwritten block takes at most 6 bytes, and each
    /// byte of a strip two.
    cpngdeflate_output_limit = (6 * 24 << 10) + 2 * cpngdeflate_strip_limit + (4 << 10),
};

/// Allocates a stream. Returns NULL if memory runs out.
cpngdeflate *_Nullable cpngdeflate_begin(void);

/// Starts a stream. The previous one need not have ended.
///
/// - level: the effort, 0 to 9. Level 0 stores, and level 1 uses ISA-L if the package has the trait ISAL.
/// - line_size: the bytes of a scanline with its filter byte, or 0 if the data has no scanlines.
void cpngdeflate_start(cpngdeflate *_Nonnull stream, int level, size_t line_size);

/// Frees a stream.
void cpngdeflate_end(cpngdeflate *_Nonnull stream);

/// Returns the maximum number of bytes of memory that a stream uses.
size_t cpngdeflate_size(void);

/// Compresses a strip.
///
/// - bytes: the strip. The earlier bytes of the stream precede it in memory.
/// - history: the number of earlier bytes in memory: the bytes of all previous strips, or at least the window.
/// - count: the number of bytes in the strip.
/// - is_last: whether the stream ends with this strip.
/// - output: a buffer of `cpngdeflate_output_limit` bytes.
///
/// Returns the number of bytes written.
size_t cpngdeflate_add(
    cpngdeflate *_Nonnull stream, const uint8_t *_Nonnull bytes, size_t history, size_t count, bool is_last,
    uint8_t *_Nonnull output);

#endif
