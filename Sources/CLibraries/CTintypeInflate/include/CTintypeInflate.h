// SPDX-License-Identifier: Apache-2.0

#ifndef CINFLATE_H
#define CINFLATE_H

#include <stddef.h>
#include <stdint.h>

// Wraps ISA-L's inflate, or zlib's without the trait ISAL. Swift would import members of ISA-L's state as tuples of
// 65,000 elements, so the state stays in C.

/// A zlib stream that is decompressed piece by piece.
typedef struct cinflate_stream cinflate_stream;

/// The result of a step.
enum cinflate_result { cinflate_goes_on, cinflate_is_finished, cinflate_is_broken };

/// Returns the number of bytes of memory that a stream uses.
size_t cinflate_size(void);

/// Creates a stream. Returns NULL if memory runs out.
cinflate_stream *_Nullable cinflate_begin(void);

/// Frees a stream.
void cinflate_end(cinflate_stream *_Nonnull stream);

/// Decompresses until the output is full, the input is used up, or the stream ends.
///
/// - input_count: the number of input bytes. The call sets it to the number of unused bytes.
/// - output_count: the number of bytes that fit into the output. The call sets it to the number of free bytes.
enum cinflate_result cinflate_step(
    cinflate_stream *_Nonnull stream, const uint8_t *_Nullable input, uint32_t *_Nonnull input_count,
    uint8_t *_Nonnull output, uint32_t *_Nonnull output_count);

#endif
