#ifndef CINFLATE_H
#define CINFLATE_H

#include <stddef.h>
#include <stdint.h>

// ISA-L's inflate: its state has members that Swift imports as tuples of 65,000 elements, so it stays in C.

/// A zlib stream that is inflated piece by piece.
typedef struct cinflate_stream cinflate_stream;

/// The result of a step.
enum cinflate_result { cinflate_goes_on, cinflate_is_finished, cinflate_is_broken };

/// The memory that a stream takes.
size_t cinflate_size(void);

/// Returns a stream at its beginning, or NULL if memory runs out.
cinflate_stream *_Nullable cinflate_begin(void);

/// Gives its memory back.
void cinflate_end(cinflate_stream *_Nonnull stream);

/// Inflates until the output is full, the input is used up, or the stream ends.
///
/// - input_count: the bytes of the input; set to the number of bytes that are left.
/// - output_count: the room for output in bytes; set to the room that is left.
enum cinflate_result cinflate_step(
    cinflate_stream *_Nonnull stream, const uint8_t *_Nullable input, uint32_t *_Nonnull input_count,
    uint8_t *_Nonnull output, uint32_t *_Nonnull output_count);

#endif
