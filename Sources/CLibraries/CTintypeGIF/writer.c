// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "CTintypeGIF.h"

enum { MAXIMUM_CODE = 4095, MAXIMUM_CODE_SIZE = 12, BLOCK_SIZE = 255 };

static const uint32_t EMPTY_SLOT = UINT32_MAX;

#define INLINE static inline __attribute__((always_inline))

/// The state that changes in the loop over the indices, kept in local variables.
struct output {
    uint32_t bits, bit_count, code_size, next_code, block_count;
    uint8_t *target;
};

INLINE struct output output_of(const struct cgif_writer *writer, uint8_t *target) {
    struct output output = {
        writer->bits, writer->bit_count, writer->code_size, writer->next_code, writer->block_count, target,
    };
    return output;
}

INLINE void keep(struct cgif_writer *writer, const struct output *output) {
    writer->bits = output->bits;
    writer->bit_count = output->bit_count;
    writer->code_size = output->code_size;
    writer->next_code = output->next_code;
    writer->block_count = output->block_count;
}

INLINE void emit_byte(struct cgif_writer *writer, struct output *output) {
    output->block_count += 1;
    writer->block[output->block_count] = (uint8_t)output->bits;
    if (output->block_count == BLOCK_SIZE) {
        writer->block[0] = BLOCK_SIZE;
        memcpy(output->target, writer->block, BLOCK_SIZE + 1);
        output->target += BLOCK_SIZE + 1;
        output->block_count = 0;
    }
}

INLINE void emit(struct cgif_writer *writer, struct output *output, uint32_t code) {
    output->bits |= code << output->bit_count;
    output->bit_count += output->code_size;
    while (output->bit_count >= 8) {
        emit_byte(writer, output);
        output->bits >>= 8;
        output->bit_count -= 8;
    }
}

/// Counts the string that each code adds to the reader's table. The number of strings determines the size of the next
/// code.
INLINE void count_code(struct output *output) {
    if (output->next_code == 1u << output->code_size && output->code_size < MAXIMUM_CODE_SIZE) output->code_size += 1;
    output->next_code += 1;
}

static void begin_table(struct cgif_writer *writer, struct output *output) {
    memset(writer->slots, 0xFF, cgif_slot_count * sizeof(*writer->slots));
    output->code_size = writer->minimum_code_size + 1;
    output->next_code = (1u << writer->minimum_code_size) + 2;
}

void cgif_begin(struct cgif_writer *writer, uint32_t *slots, uint32_t minimum_code_size) {
    memset(writer, 0, sizeof(*writer));
    writer->slots = slots;
    writer->minimum_code_size = minimum_code_size;
    writer->prefix = -1;
    struct output output = output_of(writer, writer->block);
    begin_table(writer, &output);
    emit(writer, &output, 1u << minimum_code_size);
    keep(writer, &output);
}

size_t cgif_bound(size_t count) {
    // 12 bits for each index, one more code for each table, and the length bytes of the blocks.
    size_t bytes = count + count / 2 + count / 512 + 2;
    return bytes + (bytes / BLOCK_SIZE + 1) + BLOCK_SIZE;
}

size_t cgif_write(struct cgif_writer *writer, const uint8_t *indices, size_t count, uint8_t *target) {
    if (count == 0) return 0;
    struct output output = output_of(writer, target);
    uint32_t *slots = writer->slots;
    const uint8_t *end = indices + count;
    uint32_t prefix = writer->prefix >= 0 ? (uint32_t)writer->prefix : *indices++;
    while (indices < end) {
        uint32_t index = *indices++;
        uint32_t key = prefix << 8 | index;
        uint32_t slot = key * 0x9E3779B1u >> 19;
        uint32_t entry = slots[slot];
        while (entry >> 12 != key && entry != EMPTY_SLOT) {
            slot = (slot + 1) & (cgif_slot_count - 1);
            entry = slots[slot];
        }
        if (entry != EMPTY_SLOT) {
            prefix = entry & 0xFFF;
            continue;
        }
        emit(writer, &output, prefix);
        slots[slot] = key << 12 | output.next_code;
        count_code(&output);
        if (output.next_code > MAXIMUM_CODE) {
            emit(writer, &output, 1u << writer->minimum_code_size);
            begin_table(writer, &output);
        }
        prefix = index;
    }
    writer->prefix = (int32_t)prefix;
    keep(writer, &output);
    return (size_t)(output.target - target);
}

size_t cgif_finish(struct cgif_writer *writer, uint8_t *target) {
    struct output output = output_of(writer, target);
    if (writer->prefix >= 0) {
        emit(writer, &output, (uint32_t)writer->prefix);
        count_code(&output);
    }
    emit(writer, &output, (1u << writer->minimum_code_size) + 1);
    if (output.bit_count > 0) emit_byte(writer, &output);
    if (output.block_count > 0) {
        writer->block[0] = (uint8_t)output.block_count;
        memcpy(output.target, writer->block, output.block_count + 1);
        output.target += output.block_count + 1;
    }
    *output.target++ = 0;
    return (size_t)(output.target - target);
}
