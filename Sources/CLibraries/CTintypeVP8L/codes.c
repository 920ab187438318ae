// SPDX-License-Identifier: Apache-2.0

#include "reader.h"

enum {
    LONGEST = 15,
    ROOT_BITS = 8,
    LENGTH_SYMBOLS = 19,
};

/// The order in which the lengths of the code for lengths are stored.
static const uint8_t length_order[LENGTH_SYMBOLS] = {
    17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
};

/// Returns the bits of a second table that begins with the first remaining code of `length`.
static uint32_t second_table_bits(const int32_t *counts, uint32_t length, uint32_t root_bits) {
    uint32_t bits = length - root_bits;
    int32_t left = 1 << bits;
    for (; bits + root_bits < LONGEST; bits++, left <<= 1) {
        left -= counts[bits + root_bits];
        if (left <= 0) break;
    }
    return bits;
}

/// Builds the tables for the lengths of `symbol_count` symbols.
static enum cvp8l_status build(
    const uint8_t *lengths, size_t symbol_count, uint32_t *entries, size_t *entry_count, struct cvp8l_code *code) {
    int32_t counts[LONGEST + 1] = {0};
    for (size_t symbol = 0; symbol < symbol_count; symbol++) counts[lengths[symbol]] += 1;
    counts[0] = 0;

    int32_t used = 0, space = 0;
    uint32_t places[LONGEST + 1], longest = 1;
    for (uint32_t length = 1; length <= LONGEST; length++) {
        places[length] = (uint32_t)used;
        used += counts[length];
        space += counts[length] << (LONGEST - length);
        if (counts[length] > 0) longest = length;
    }
    uint16_t sorted[cvp8l_most_symbols];
    for (size_t symbol = 0; symbol < symbol_count; symbol++) {
        if (lengths[symbol] > 0) sorted[places[lengths[symbol]]++] = (uint16_t)symbol;
    }
    *entry_count = 0;
    if (used == 1) {
        *code = (struct cvp8l_code){.start = sorted[0], .root_bits = 0};
        return cvp8l_is_done;
    }
    // A complete code has neither unused bit patterns nor symbols without one.
    if (used == 0 || space != 1 << LONGEST) return cvp8l_is_damaged;

    uint32_t root_bits = longest < ROOT_BITS ? longest : ROOT_BITS, root_size = 1u << root_bits;
    uint32_t end = root_size, next = 0, second_start = 0, second_size = 0, second_prefix = root_size;
    const uint16_t *symbol = sorted;
    for (uint32_t length = 1; length <= longest; length++) {
        next <<= 1;
        for (int32_t left = counts[length]; left > 0; left--) {
            uint32_t bits = __builtin_bitreverse32(next++) >> (32 - length);
            uint32_t entry = (uint32_t)*symbol++ << 16 | length;
            if (length <= root_bits) {
                for (uint32_t index = bits; index < root_size; index += 1u << length) entries[index] = entry;
                continue;
            }
            uint32_t prefix = bits & (root_size - 1);
            if (prefix != second_prefix) {
                second_prefix = prefix;
                uint32_t second_bits = second_table_bits(counts, length, root_bits);
                second_start = end;
                second_size = 1u << second_bits;
                end += second_size;
                if (end > cvp8l_most_entries) return cvp8l_is_damaged;
                entries[prefix] = second_start << 16 | 0x80 | second_bits;
            }
            for (uint32_t index = bits >> root_bits; index < second_size; index += 1u << (length - root_bits)) {
                entries[second_start + index] = entry;
            }
            counts[length] -= 1;
        }
    }
    *entry_count = end;
    *code = (struct cvp8l_code){.start = 0, .root_bits = root_bits};
    return cvp8l_is_done;
}

INLINE enum cvp8l_status missing_or_damaged(const struct reader *reader) {
    return is_exhausted(reader) ? cvp8l_needs_bytes : cvp8l_is_damaged;
}

/// Reads the lengths of a code, which are coded themselves.
static enum cvp8l_status read_lengths(struct reader *reader, uint8_t *lengths, size_t symbol_count) {
    uint8_t length_lengths[LENGTH_SYMBOLS] = {0};
    uint32_t length_count = read_bits(reader, 4) + 4;
    for (uint32_t index = 0; index < length_count; index++) {
        length_lengths[length_order[index]] = (uint8_t)read_bits(reader, 3);
    }
    if (is_exhausted(reader)) return cvp8l_needs_bytes;
    // The lengths of this code are at most 7, so it has one table.
    uint32_t entries[1 << 7];
    size_t entry_count;
    struct cvp8l_code code;
    enum cvp8l_status status = build(length_lengths, LENGTH_SYMBOLS, entries, &entry_count, &code);
    if (status != cvp8l_is_done) return status;

    size_t left = symbol_count;
    if (read_bits(reader, 1) == 1) {
        left = 2 + read_bits(reader, 2 + 2 * read_bits(reader, 3));
        if (left > symbol_count) return missing_or_damaged(reader);
    }
    uint8_t previous = 8;
    for (size_t symbol = 0; symbol < symbol_count && left > 0; left--) {
        refill(reader);
        uint32_t value = read_symbol(reader, code, entries);
        if (is_exhausted(reader)) return cvp8l_needs_bytes;
        if (value < 16) {
            lengths[symbol++] = (uint8_t)value;
            if (value > 0) previous = (uint8_t)value;
            continue;
        }
        size_t count = value == 16 ? 3 + read_bits(reader, 2)
            : value == 17          ? 3 + read_bits(reader, 3)
                                   : 11 + read_bits(reader, 7);
        if (count > symbol_count - symbol) return missing_or_damaged(reader);
        if (value == 16) memset(lengths + symbol, previous, count);
        symbol += count;
    }
    return is_exhausted(reader) ? cvp8l_needs_bytes : cvp8l_is_done;
}

static enum cvp8l_status read_code(
    struct reader *reader, size_t symbol_count, uint32_t *entries, size_t *entry_count, struct cvp8l_code *code) {
    uint8_t lengths[cvp8l_most_symbols];
    memset(lengths, 0, symbol_count);
    if (read_bits(reader, 1) == 1) {
        bool is_pair = read_bits(reader, 1) == 1;
        uint32_t first = read_bits(reader, read_bits(reader, 1) == 1 ? 8 : 1);
        uint32_t second = is_pair ? read_bits(reader, 8) : first;
        if (is_exhausted(reader)) return cvp8l_needs_bytes;
        // A symbol that does not exist is ignored beside one that does.
        if (first >= symbol_count && second >= symbol_count) return cvp8l_is_damaged;
        if (first < symbol_count) lengths[first] = 1;
        if (second < symbol_count) lengths[second] = 1;
    } else {
        enum cvp8l_status status = read_lengths(reader, lengths, symbol_count);
        if (status != cvp8l_is_done) return status;
    }
    return build(lengths, symbol_count, entries, entry_count, code);
}

enum cvp8l_status cvp8l_read_code(
    size_t symbol_count, const uint8_t *bytes, size_t byte_count, size_t *bit_offset, uint32_t *entries,
    size_t *entry_count, struct cvp8l_code *code) {
    struct reader reader = begin_reading(bytes, byte_count, *bit_offset);
    enum cvp8l_status status = read_code(&reader, symbol_count, entries, entry_count, code);
    *bit_offset = bit_offset_of(&reader);
    return status;
}
