// SPDX-License-Identifier: Apache-2.0

#ifndef READER_H
#define READER_H

#include "CTintypeVP8L.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/// Reads the bits of a stream, the lowest bit of each byte first, and zeros behind the last byte.
struct reader {
    const uint8_t *bytes;
    size_t count;
    /// The offset of the next byte that is not in `bits` yet.
    size_t offset;
    /// Bits that were not read yet, the next one lowest. There may be others above the counted ones.
    uint64_t bits;
    /// The number of valid bits; negative if too many were read.
    int64_t bit_count;
};

/// By value, so that a reader can stay in registers elsewhere.
static __attribute__((noinline)) struct reader refilled_slowly(struct reader reader) {
    if (reader.bit_count < 0) {
        reader.bits = 0;
        return reader;
    }
    // Clear the bits that a fast refill left above the counted ones; they would be read twice.
    reader.bits &= (1ull << reader.bit_count) - 1;
    while (reader.bit_count <= 48 && reader.offset < reader.count) {
        reader.bits |= (uint64_t)reader.bytes[reader.offset++] << reader.bit_count;
        reader.bit_count += 8;
    }
    return reader;
}

/// Makes 56 bits readable, or as many as are available.
INLINE void refill(struct reader *reader) {
    if (reader->count - reader->offset >= 8 && reader->bit_count >= 0) {
        uint64_t next;
        memcpy(&next, reader->bytes + reader->offset, sizeof(next));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        next = __builtin_bswap64(next);
#endif
        reader->bits |= next << reader->bit_count;
        reader->offset += (size_t)(63 - reader->bit_count) >> 3;
        reader->bit_count |= 56;
    } else {
        *reader = refilled_slowly(*reader);
    }
}

INLINE void skip(struct reader *reader, uint32_t count) {
    reader->bits >>= count;
    reader->bit_count -= count;
}

/// Reads a number of up to 24 bits.
INLINE uint32_t read_bits(struct reader *reader, uint32_t count) {
    if (reader->bit_count < count) refill(reader);
    uint32_t value = (uint32_t)(reader->bits & ((1ull << count) - 1));
    skip(reader, count);
    return value;
}

INLINE uint32_t read_symbol(struct reader *reader, struct cvp8l_code code, const uint32_t *entries) {
    if (code.root_bits == 0) return code.start;
    const uint32_t *table = entries + code.start;
    uint32_t entry = table[reader->bits & ((1ull << code.root_bits) - 1)];
    if (entry & 0x80) {
        uint64_t rest = reader->bits >> code.root_bits & ((1ull << (entry & 0x7F)) - 1);
        entry = table[(entry >> 16) + rest];
    }
    skip(reader, entry & 0xFF);
    return entry >> 16;
}

/// Returns whether more bits were read than available.
INLINE bool is_exhausted(const struct reader *reader) {
    return reader->bit_count < 0;
}

INLINE struct reader begin_reading(const uint8_t *bytes, size_t count, size_t bit_offset) {
    struct reader reader = {.bytes = bytes, .count = count, .offset = bit_offset / 8};
    if (reader.offset > count) reader.offset = count;
    refill(&reader);
    skip(&reader, bit_offset % 8);
    return reader;
}

INLINE size_t bit_offset_of(const struct reader *reader) {
    return (size_t)((int64_t)(reader->offset * 8) - reader->bit_count);
}

#endif
