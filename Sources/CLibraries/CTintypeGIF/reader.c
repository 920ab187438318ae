// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "CTintypeGIF.h"

enum { MAXIMUM_CODE_SIZE = 12, FULL_TABLE = 1 << MAXIMUM_CODE_SIZE, PIECE_SIZE = 16 };

typedef uint8_t piece __attribute__((vector_size(PIECE_SIZE)));

#define INLINE static inline __attribute__((always_inline))

INLINE void copy_piece(uint8_t *target, const uint8_t *source) {
    piece bytes;
    memcpy(&bytes, source, PIECE_SIZE);
    memcpy(target, &bytes, PIECE_SIZE);
}

INLINE uint64_t load_bits(const uint8_t *cursor) {
    uint64_t bits;
    memcpy(&bits, cursor, sizeof(bits));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    return bits;
}

enum cgif_status cgif_read(struct cgif_reader *reader, const uint8_t **cursor, const uint8_t *end) {
    uint8_t *window = reader->window;
    uint64_t *entries = reader->entries;
    const uint8_t *next = *cursor;
    size_t position = reader->position, threshold = reader->threshold;
    uint32_t limit = reader->limit, code_size = reader->code_size, bit_count = reader->bit_count;
    uint32_t clear_code = reader->clear_code;
    uint64_t bits = reader->bits, mask = (1ull << code_size) - 1;
    enum cgif_status status = cgif_needs_bytes;

    while (true) {
        if (bit_count < code_size) {
            if (end - next >= 8) {
                // The next load reads the bits above the counted ones again.
                bits |= load_bits(next) << bit_count;
                next += (63 - bit_count) >> 3;
                bit_count |= 56;
            } else {
                while (bit_count <= 56 && next < end) {
                    bits |= (uint64_t)*next++ << bit_count;
                    bit_count += 8;
                }
                if (bit_count < code_size) break;
            }
        }
        uint32_t code = (uint32_t)(bits & mask);
        bits >>= code_size;
        bit_count -= code_size;
        if (code > limit) {
            status = cgif_is_damaged;
            break;
        }
        uint64_t entry = entries[code];
        size_t length = entry & 0xFFFF;
        if (length == 0) {
            status = code == clear_code ? cgif_clears : cgif_has_ended;
            break;
        }
        uint8_t *source = window + (entry >> 16), *target = window + position;
        copy_piece(target, source);
        // The copies run past the end of the string. The next string overwrites the excess.
        for (size_t offset = PIECE_SIZE; offset < length; offset += PIECE_SIZE) {
            copy_piece(target + offset, source + offset);
        }
        // The code names the string that is being completed: the previous string and its own first index, which is
        // known only now.
        if (code == limit) target[length - 1] = *source;
        if (limit < FULL_TABLE) {
            limit += 1;
            entries[limit] = (uint64_t)position << 16 | (length + 1);
            if (limit > mask) {
                if (code_size < MAXIMUM_CODE_SIZE) {
                    code_size += 1;
                    mask = mask << 1 | 1;
                } else {
                    size_t table_end = position + length;
                    reader->table_end = table_end;
                    if (threshold > table_end + reader->portion) threshold = table_end + reader->portion;
                }
            }
        }
        position += length;
        if (position >= threshold) {
            status = cgif_is_full;
            break;
        }
    }

    *cursor = next;
    reader->position = position;
    reader->limit = limit;
    reader->code_size = code_size;
    reader->bits = bits;
    reader->bit_count = bit_count;
    return status;
}

void cgif_expand(
    const uint32_t *palette, const uint8_t *indices, size_t count, uint8_t *target, size_t bytes_per_pixel,
    bool is_laid_over) {
    if (count == 0) return;
    if (bytes_per_pixel == 4) {
        uint32_t *pixels = (uint32_t *)(void *)target;
        if (is_laid_over) {
            for (size_t index = 0; index < count; index++) {
                uint32_t pixel = palette[indices[index]];
                pixels[index] = pixel == 0 ? pixels[index] : pixel;
            }
        } else {
            for (size_t index = 0; index < count; index++) pixels[index] = palette[indices[index]];
        }
        return;
    }
    // Each pixel is stored as four bytes. The next pixel overwrites the fourth.
    for (size_t index = 0; index + 1 < count; index++, target += 3) {
        memcpy(target, palette + indices[index], 4);
    }
    memcpy(target, palette + indices[count - 1], 3);
}
