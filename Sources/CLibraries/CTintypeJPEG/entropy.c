// SPDX-License-Identifier: Apache-2.0

#include "entropy.h"
#include "report.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include <jerror.h>
#define JPEG_INTERNALS
#include <jpegint.h>

// Decodes the Huffman codes of a sequential JPEG (ITU-T T.81, F.2.2) instead of libjpeg-turbo's decode_mcu. A scaled
// decode spends most of its time there, and the library decodes one symbol after the other. This decoder is faster in
// two ways:
//
// * It copies data up to the next marker, without stuffing, to a window that zeros follow. So no block has to check for
//   the end of the data.
// * One table look-up returns up to two coefficients and the end of the block. If only the DC coefficient is needed,
//   one look-up skips all symbols in twelve bits.
//
// Damaged data has the same result as in the library: a warning, and zeros for the missing coefficients.
//
// The decoder uses the second member of `jpeg_entropy_decoder` and the third of `jpeg_marker_reader`. All versions of
// libjpeg-turbo from 1.0 to 3.2 have them at the same offsets.
#if defined(LIBJPEG_TURBO_VERSION_NUMBER)
#if LIBJPEG_TURBO_VERSION_NUMBER >= 1005000 && LIBJPEG_TURBO_VERSION_NUMBER < 3003000
#define KNOWS_LIBRARY
#endif
#endif

#ifndef KNOWS_LIBRARY

bool cjpeg_entropy_install(j_decompress_ptr library) {
    (void)library;
    return false;
}

#else

#if JPEG_LIB_VERSION >= 70
#define SCALED_SIZE(component) ((component)->DCT_h_scaled_size)
#else
#define SCALED_SIZE(component) ((component)->DCT_scaled_size)
#endif

// The number of bits in one look-up. In measurements, up to two bits more or less were no faster.
#define SYMBOL_BITS 10
#define PAIR_BITS 11
#define SKIP_BITS 12

#define WINDOW_SIZE 16384
// The maximum number of bytes of a block, rounded up: 64 times an invalid code (17 bits) and a value of 15 bits.
#define BLOCK_BYTES 272
#define PADDING (BLOCK_BYTES * D_MAX_BLOCKS_IN_MCU + 64)

// MARK: Tables

// A symbol. If the code is longer than the look-up or invalid, `is_long` is set and the decoder searches the lists
// below.
typedef struct symbol_entry {
    uint8_t code_bits;
    uint8_t value_bits;
    uint8_t run;
    bool is_end : 1;
    bool is_long : 1;
} symbol_entry;

typedef struct symbol_table {
    symbol_entry entries[1 << SYMBOL_BITS];
    // By code length: the largest code, and the difference between a code and the index of its symbol (T.81, F.2.2.3).
    int32_t largest[18];
    int32_t offset[18];
    uint8_t symbols[256];
} symbol_table;

// Up to two coefficients and the end of the block. From the lowest bit: the number of bits read (5 bits), flags, the
// steps to the first coefficient (8), the steps to the second (8), the steps to the position behind them (8), and the
// two values (16 each).
//
// An entry with a single coefficient contains it twice. An entry without coefficients writes a zero over an existing
// zero.
typedef uint64_t pair_entry;
#define PAIR_BITS_OF(entry) ((unsigned)(entry)&0x1F)
#define PAIR_FIRST(entry) ((unsigned)(entry) >> 8 & 0xFF)
#define PAIR_SECOND(entry) ((unsigned)(entry) >> 16 & 0xFF)
#define PAIR_STEPS(entry) ((unsigned)(entry) >> 24)
#define PAIR_FIRST_VALUE(entry) ((JCOEF)((entry) >> 32))
#define PAIR_SECOND_VALUE(entry) ((JCOEF)((entry) >> 48))
// The block ends.
#define PAIR_END 0x20u
// A single symbol whose value reaches beyond the look-up. Its run and the number of its value bits replace the steps to
// the coefficients.
#define PAIR_ONE 0x40u
// Set if one of the flags above is set, and also if the code is longer than the look-up.
#define PAIR_SPECIAL 0x80u

// Several symbols to skip. From the lowest bit: the number of bits (5 bits), the number of coefficients (7), and flags.
typedef uint16_t skip_entry;
#define SKIP_BITS_OF(entry) ((unsigned)(entry)&0x1F)
#define SKIP_STEPS(entry) ((unsigned)(entry) >> 5)
// Flags in a sum of steps that starts at 64: the block is full, the block has ended, the code is longer than the
// look-up.
#define SKIP_FULL (1u << 7)
#define SKIP_END (1u << 8)
#define SKIP_LONG (1u << 9)

typedef struct pair_table {
    pair_entry entries[1 << PAIR_BITS];
} pair_table;

typedef struct skip_table {
    skip_entry entries[1 << SKIP_BITS];
} skip_table;

// The tables for one block of an MCU.
typedef struct block_place {
    const symbol_table *dc;
    const symbol_table *ac;
    // NULL if the DC coefficient is enough.
    const pair_table *pairs;
    const skip_table *skips;
    int component;
} block_place;

struct cjpeg_entropy {
    // The library's `insufficient_data`: the decoder produces zeros until the next restart.
    bool is_exhausted;
    unsigned restarts_to_go;
    unsigned mcus_to_go;
    int blocks;
    int last_dc[MAX_COMPS_IN_SCAN];
    block_place places[D_MAX_BLOCKS_IN_MCU];
    symbol_table *dc_tables[NUM_HUFF_TBLS];
    symbol_table *ac_tables[NUM_HUFF_TBLS];
    pair_table *pair_tables[NUM_HUFF_TBLS];
    skip_table *skip_tables[NUM_HUFF_TBLS];
    // The position of the next bit in the window, and the number of bytes in the window.
    size_t bit;
    size_t end;
    uint8_t *window;
};

// The entries behind index 63 catch runs that reach beyond the end of a block.
static const uint8_t natural_order[64 + 16] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,
    6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31,
    39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
};

// The library checked the codes when the scan began, so their counts are valid.
static void make_symbols(symbol_table *table, const JHUFF_TBL *codes, bool is_dc) {
    memset(table, 0, sizeof(*table));
    for (int index = 0; index < 1 << SYMBOL_BITS; index++) table->entries[index].is_long = true;
    memcpy(table->symbols, codes->huffval, sizeof(table->symbols));
    int index = 0;
    int32_t code = 0;
    for (int length = 1; length <= 16; length++, code <<= 1) {
        table->offset[length] = index - code;
        for (int left = codes->bits[length]; left > 0; left--, index++, code++) {
            if (length > SYMBOL_BITS) continue;
            unsigned value_bits = codes->huffval[index] & 15, run = is_dc ? 0 : codes->huffval[index] >> 4;
            symbol_entry entry = {(uint8_t)length, (uint8_t)value_bits, (uint8_t)run, false, false};
            entry.is_end = !is_dc && value_bits == 0 && run != 15;
            int shift = SYMBOL_BITS - length;
            for (int rest = 0; rest < 1 << shift; rest++) table->entries[(code << shift) + rest] = entry;
        }
        table->largest[length] = codes->bits[length] > 0 ? code - 1 : -1;
    }
    // Ends the search in `take_long_symbol` for an invalid code.
    table->largest[17] = INT32_MAX;
}

// For each sequence of `bits` bits, stores the symbol of the first code and its length, or length 0 if the code is
// longer.
static void spread_codes(const JHUFF_TBL *codes, int bits, uint8_t *lengths, uint8_t *symbols) {
    memset(lengths, 0, (size_t)1 << bits);
    int index = 0, code = 0;
    for (int length = 1; length <= bits; length++, code <<= 1) {
        for (int left = codes->bits[length]; left > 0; left--, index++, code++) {
            size_t start = (size_t)code << (bits - length), count = (size_t)1 << (bits - length);
            memset(lengths + start, length, count);
            memset(symbols + start, codes->huffval[index], count);
        }
    }
}

static int extended(unsigned value, unsigned bits) {
    if (bits == 0) return 0;
    return value >> (bits - 1) != 0 ? (int)value : (int)value + 1 - (1 << bits);
}

static pair_entry pair_at(unsigned index, const uint8_t *lengths, const uint8_t *symbols) {
    const unsigned mask = (1 << PAIR_BITS) - 1;
    unsigned bits = 0, steps = 0, flags = 0, count = 0;
    unsigned places[2] = {0, 0};
    int values[2] = {0, 0};
    while (bits < PAIR_BITS) {
        unsigned at = index << bits & mask, length = lengths[at], value_bits = symbols[at] & 15, run = symbols[at] >> 4;
        if (length == 0 || bits + length > PAIR_BITS) break;
        if (value_bits == 0 && run != 15) {
            bits += length;
            flags = PAIR_SPECIAL | PAIR_END;
            break;
        }
        if (count == 2 || bits + length + value_bits > PAIR_BITS) break;
        bits += length;
        unsigned value = (index << bits & mask) >> (PAIR_BITS - value_bits);
        bits += value_bits;
        values[count] = extended(value, value_bits);
        places[count] = steps + run;
        count++;
        steps += run + 1;
    }
    if (bits == 0) {
        if (lengths[index] == 0) return PAIR_SPECIAL;
        unsigned value_bits = symbols[index] & 15, run = symbols[index] >> 4;
        return lengths[index] | PAIR_SPECIAL | PAIR_ONE | run << 8 | value_bits << 16 | (pair_entry)(run + 1) << 24;
    }
    if (count < 2) {
        places[1] = places[0];
        values[1] = values[0];
    }
    return bits | flags | places[0] << 8 | places[1] << 16 | (pair_entry)steps << 24
        | (pair_entry)(uint16_t)values[0] << 32 | (pair_entry)(uint16_t)values[1] << 48;
}

static void make_pairs(pair_table *table, const JHUFF_TBL *codes) {
    uint8_t lengths[1 << PAIR_BITS], symbols[1 << PAIR_BITS];
    spread_codes(codes, PAIR_BITS, lengths, symbols);
    for (unsigned index = 0; index < 1 << PAIR_BITS; index++) table->entries[index] = pair_at(index, lengths, symbols);
}

static skip_entry skip_at(unsigned index, const uint8_t *lengths, const uint8_t *symbols) {
    const unsigned mask = (1 << SKIP_BITS) - 1;
    unsigned bits = 0, steps = 0;
    // A limit low enough that the last run cannot overflow into the flags.
    while (bits < SKIP_BITS && steps <= 40) {
        unsigned at = index << bits & mask, length = lengths[at], value_bits = symbols[at] & 15, run = symbols[at] >> 4;
        if (length == 0 || bits + length > SKIP_BITS) {
            if (bits == 0) steps = SKIP_LONG;
            break;
        }
        if (value_bits == 0 && run != 15) {
            bits += length;
            steps |= SKIP_END;
            break;
        }
        // If it is the only symbol, its value may reach beyond the look-up.
        if (bits > 0 && bits + length + value_bits > SKIP_BITS) break;
        bits += length + value_bits;
        steps += run + 1;
    }
    return (skip_entry)(bits | steps << 5);
}

static void make_skips(skip_table *table, const JHUFF_TBL *codes) {
    uint8_t lengths[1 << SKIP_BITS], symbols[1 << SKIP_BITS];
    spread_codes(codes, SKIP_BITS, lengths, symbols);
    for (unsigned index = 0; index < 1 << SKIP_BITS; index++) table->entries[index] = skip_at(index, lengths, symbols);
}

// MARK: Input

// Moves the unread rest to the start of the window, and appends the data up to the next marker, without stuffing.
static void fill_window(j_decompress_ptr library, struct cjpeg_entropy *entropy) {
    struct jpeg_source_mgr *source = library->src;
    size_t start = entropy->bit >> 3;
    if (start > entropy->end) start = entropy->end;
    size_t end = entropy->end - start;
    memmove(entropy->window, entropy->window + start, end);
    entropy->bit -= start << 3;
    while (end < WINDOW_SIZE && library->unread_marker == 0) {
        // Never suspends, because all bytes are present.
        if (source->bytes_in_buffer == 0) source->fill_input_buffer(library);
        size_t count = WINDOW_SIZE - end;
        if (count > source->bytes_in_buffer) count = source->bytes_in_buffer;
        const uint8_t *bytes = source->next_input_byte, *found = memchr(bytes, 0xFF, count);
        if (found != NULL) count = (size_t)(found - bytes);
        memcpy(entropy->window + end, bytes, count);
        end += count;
        source->next_input_byte += count;
        source->bytes_in_buffer -= count;
        if (found == NULL) continue;
        int marker;
        do {
            if (source->bytes_in_buffer == 0) source->fill_input_buffer(library);
            source->bytes_in_buffer--;
            marker = *source->next_input_byte++;
        } while (marker == 0xFF);
        if (marker == 0) {
            entropy->window[end++] = 0xFF;
        } else {
            library->unread_marker = marker;
        }
    }
    memset(entropy->window + end, 0, PADDING);
    entropy->end = end;
}

// Warns of bytes before a marker that no block needed. The library does not warn of up to eight such bytes if it has
// already read them ahead, which depends on its refills.
static void warn_of_rest(j_decompress_ptr library, const struct cjpeg_entropy *entropy) {
    size_t used = (entropy->bit + 7) >> 3;
    // If the marker has not been found yet, the library counts the bytes that it skips.
    if (entropy->is_exhausted || library->unread_marker == 0 || entropy->end <= used) return;
    WARNMS2(library, JWRN_EXTRANEOUS_DATA, (int)(entropy->end - used), library->unread_marker);
}

static boolean restart(j_decompress_ptr library, struct cjpeg_entropy *entropy) {
    warn_of_rest(library, entropy);
    entropy->bit = 0;
    entropy->end = 0;
    if (!library->marker->read_restart_marker(library)) return FALSE;
    memset(entropy->last_dc, 0, sizeof(entropy->last_dc));
    entropy->restarts_to_go = library->restart_interval;
    if (library->unread_marker == 0) {
        entropy->is_exhausted = false;
    } else {
        // The library found another marker instead of the restart marker, so there is no data. Decode zeros.
        memset(entropy->window, 0, PADDING);
    }
    return TRUE;
}

// MARK: Bits

typedef struct bit_reader {
    const uint8_t *next;
    // The next bits, with the first bit highest. At least `count` of them are valid.
    uint64_t bits;
    unsigned count;
} bit_reader;

#define INLINE static inline __attribute__((always_inline))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

// Fills the reader to at least 56 bits. The next refill reads the bits above whole bytes again, with the same values.
INLINE void refill(bit_reader *reader) {
    uint64_t next;
    memcpy(&next, reader->next, sizeof(next));
    reader->bits |= be64toh(next) >> reader->count;
    reader->next += (63 - reader->count) >> 3;
    reader->count |= 56;
}

INLINE unsigned look(const bit_reader *reader, unsigned count) {
    return (unsigned)(reader->bits >> (64 - count));
}

INLINE void take(bit_reader *reader, unsigned count) {
    reader->bits <<= count;
    reader->count -= count;
}

// Reads a value of `count` bits, at most 16, and extends it (T.81, F.12). It is negative if its first bit is 0.
INLINE int take_value(bit_reader *reader, unsigned count) {
    int value = (int)(reader->bits >> 1 >> (63 - count));
    int is_negative = ~(int)((int64_t)reader->bits >> 63);
    take(reader, count);
    return value + (is_negative & (1 - (1 << count)));
}

// Reads a symbol whose code is longer than the look-up. Returns 0 for an invalid code, and skips 17 bits.
static __attribute__((noinline)) unsigned take_long_symbol(
    j_decompress_ptr library, bit_reader *reader, const symbol_table *table) {
    unsigned length = SYMBOL_BITS + 1;
    while ((int32_t)look(reader, length) > table->largest[length]) length++;
    unsigned symbol = 0;
    if (length > 16) {
        WARNMS(library, JWRN_HUFF_BAD_CODE);
    } else {
        symbol = table->symbols[((int32_t)look(reader, length) + table->offset[length]) & 255];
    }
    take(reader, length);
    return symbol;
}

// Reads a symbol, and refills the reader.
INLINE symbol_entry take_symbol(j_decompress_ptr library, bit_reader *reader, const symbol_table *table) {
    refill(reader);
    symbol_entry entry = table->entries[look(reader, SYMBOL_BITS)];
    if (UNLIKELY(entry.is_long)) {
        bit_reader copy = *reader;
        unsigned symbol = take_long_symbol(library, &copy, table);
        *reader = copy;
        entry.value_bits = symbol & 15;
        entry.run = symbol >> 4;
        entry.is_end = entry.value_bits == 0 && entry.run != 15;
        refill(reader);
    } else {
        take(reader, entry.code_bits);
    }
    return entry;
}

// MARK: Blocks

INLINE int take_dc(j_decompress_ptr library, bit_reader *reader, const symbol_table *table) {
    symbol_entry entry = take_symbol(library, reader, table);
    return take_value(reader, entry.value_bits);
}

INLINE void write_pair(JCOEF *block, unsigned place, pair_entry entry) {
    // Write the second one first. If there is only one, both are the same.
    block[natural_order[place + PAIR_SECOND(entry)]] = PAIR_SECOND_VALUE(entry);
    block[natural_order[place + PAIR_FIRST(entry)]] = PAIR_FIRST_VALUE(entry);
}

// Decodes all AC coefficients of a block that contains zeros.
INLINE void take_ac(
    j_decompress_ptr library, bit_reader *reader, const symbol_table *table, const pair_table *pairs, JCOEF *block) {
    unsigned place = 1;
    while (place < 64) {
        refill(reader);
        pair_entry entry = pairs->entries[look(reader, PAIR_BITS)];
        unsigned next = place + PAIR_STEPS((uint32_t)entry);
        if (LIKELY(!(entry & PAIR_SPECIAL) && next <= 64)) {
            write_pair(block, place, entry);
            take(reader, PAIR_BITS_OF(entry));
            place = next;
            if (place == 64) return;
            // The reader has enough bits for a second look-up.
            entry = pairs->entries[look(reader, PAIR_BITS)];
            next = place + PAIR_STEPS((uint32_t)entry);
            if (LIKELY(!(entry & PAIR_SPECIAL) && next <= 64)) {
                write_pair(block, place, entry);
                take(reader, PAIR_BITS_OF(entry));
                place = next;
                continue;
            }
        }
        // If the block is already full, the end-of-block code does not belong to it.
        if (entry & PAIR_END && next < 64) {
            if (next > place) write_pair(block, place, entry);
            take(reader, PAIR_BITS_OF(entry));
            return;
        }
        if (entry & PAIR_ONE && next <= 64) {
            take(reader, PAIR_BITS_OF(entry));
            block[natural_order[next - 1]] = (JCOEF)take_value(reader, PAIR_SECOND(entry));
            place = next;
            continue;
        }
        // Decode a single symbol, because the code is long or the block ends within the look-up.
        symbol_entry symbol = take_symbol(library, reader, table);
        if (symbol.is_end) return;
        place += symbol.run;
        // For a run without a value, this writes one more zero.
        block[natural_order[place]] = (JCOEF)take_value(reader, symbol.value_bits);
        place++;
    }
}

// Skips the AC coefficients of a block.
INLINE void skip_ac(j_decompress_ptr library, bit_reader *reader, const symbol_table *table, const skip_table *skips) {
    unsigned sum = 64 + 1;
    while (sum < SKIP_FULL) {
        refill(reader);
        skip_entry entry = skips->entries[look(reader, SKIP_BITS)];
        unsigned next = sum + SKIP_STEPS(entry);
        if (LIKELY(next < SKIP_FULL)) {
            take(reader, SKIP_BITS_OF(entry));
            sum = next;
            // The reader has enough bits for a second look-up.
            entry = skips->entries[look(reader, SKIP_BITS)];
            next = sum + SKIP_STEPS(entry);
            if (LIKELY(next < SKIP_FULL)) {
                take(reader, SKIP_BITS_OF(entry));
                sum = next;
                continue;
            }
        }
        if ((next & (SKIP_LONG | SKIP_END | SKIP_FULL)) == SKIP_END) {
            take(reader, SKIP_BITS_OF(entry));
            return;
        }
        // Decode a single symbol, because the code is long or the block ends within the look-up.
        symbol_entry symbol = take_symbol(library, reader, table);
        if (symbol.is_end) return;
        take(reader, symbol.value_bits);
        sum += symbol.run + 1;
    }
}

// Decodes one MCU, or skips it if `blocks` is NULL. The library skips scan lines in this way.
static boolean decode_mcu(j_decompress_ptr library, JBLOCKROW *blocks) {
    struct cjpeg_entropy *entropy = ((cjpeg_report *)library->client_data)->entropy;
    if (library->restart_interval > 0) {
        if (entropy->restarts_to_go == 0 && !restart(library, entropy)) return FALSE;
        entropy->restarts_to_go--;
    }
    if (!entropy->is_exhausted) {
        if (library->unread_marker == 0 && entropy->end < (entropy->bit >> 3) + (size_t)BLOCK_BYTES * entropy->blocks) {
            fill_window(library, entropy);
        }
        bit_reader reader = {entropy->window + (entropy->bit >> 3), 0, 0};
        refill(&reader);
        take(&reader, entropy->bit & 7);
        for (int index = 0; index < entropy->blocks; index++) {
            const block_place *place = &entropy->places[index];
            // Only damaged data has differences that overflow. The library lets them wrap around as well.
            int *last = &entropy->last_dc[place->component];
            *last = (int)((unsigned)*last + (unsigned)take_dc(library, &reader, place->dc));
            if (blocks != NULL) blocks[index][0][0] = (JCOEF)*last;
            if (blocks != NULL && place->pairs != NULL) {
                take_ac(library, &reader, place->ac, place->pairs, blocks[index][0]);
            } else {
                skip_ac(library, &reader, place->ac, place->skips);
            }
        }
        entropy->bit = (size_t)(reader.next - entropy->window) * 8 - reader.count;
        if (entropy->bit > entropy->end * 8) {
            WARNMS(library, JWRN_HIT_MARKER);
            entropy->is_exhausted = true;
        }
    }
    if (entropy->mcus_to_go > 0 && --entropy->mcus_to_go == 0) warn_of_rest(library, entropy);
    return TRUE;
}

// MARK: Life

// Each large object has its own allocation, so that the address sanitizer detects accesses beyond its end.
static void *allocate(j_decompress_ptr library, size_t size) {
    return library->mem->alloc_large((j_common_ptr)library, JPOOL_IMAGE, size);
}

static void make_tables(j_decompress_ptr library, struct cjpeg_entropy *entropy, const jpeg_component_info *component) {
    int dc = component->dc_tbl_no, ac = component->ac_tbl_no;
    if (entropy->dc_tables[dc] == NULL) {
        entropy->dc_tables[dc] = allocate(library, sizeof(symbol_table));
        make_symbols(entropy->dc_tables[dc], library->dc_huff_tbl_ptrs[dc], true);
    }
    if (entropy->ac_tables[ac] == NULL) {
        entropy->ac_tables[ac] = allocate(library, sizeof(symbol_table));
        make_symbols(entropy->ac_tables[ac], library->ac_huff_tbl_ptrs[ac], false);
        // The library may skip lines at any scale.
        entropy->skip_tables[ac] = allocate(library, sizeof(skip_table));
        make_skips(entropy->skip_tables[ac], library->ac_huff_tbl_ptrs[ac]);
    }
    if (SCALED_SIZE(component) > 1 && entropy->pair_tables[ac] == NULL) {
        entropy->pair_tables[ac] = allocate(library, sizeof(pair_table));
        make_pairs(entropy->pair_tables[ac], library->ac_huff_tbl_ptrs[ac]);
    }
}

bool cjpeg_entropy_install(j_decompress_ptr library) {
    if (library->progressive_mode || library->arith_code || library->data_precision != 8) return false;
    if (library->buffered_image || jpeg_has_multiple_scans(library)) return false;
    for (int index = 0; index < library->comps_in_scan; index++) {
        const jpeg_component_info *component = library->cur_comp_info[index];
        if (library->dc_huff_tbl_ptrs[component->dc_tbl_no] == NULL) return false;
        if (library->ac_huff_tbl_ptrs[component->ac_tbl_no] == NULL) return false;
    }
    struct cjpeg_entropy *entropy = allocate(library, sizeof(*entropy));
    memset(entropy, 0, sizeof(*entropy));
    entropy->window = allocate(library, WINDOW_SIZE + PADDING);
    entropy->restarts_to_go = library->restart_interval;
    entropy->mcus_to_go = library->MCUs_per_row * library->MCU_rows_in_scan;
    entropy->blocks = library->blocks_in_MCU;
    for (int index = 0; index < library->comps_in_scan; index++) {
        make_tables(library, entropy, library->cur_comp_info[index]);
    }
    for (int index = 0; index < library->blocks_in_MCU; index++) {
        block_place *place = &entropy->places[index];
        place->component = library->MCU_membership[index];
        const jpeg_component_info *component = library->cur_comp_info[place->component];
        place->dc = entropy->dc_tables[component->dc_tbl_no];
        place->ac = entropy->ac_tables[component->ac_tbl_no];
        // Like the library: at one sample per block, the block has only a DC coefficient.
        bool needs_ac = component->component_needed && SCALED_SIZE(component) > 1;
        place->pairs = needs_ac ? entropy->pair_tables[component->ac_tbl_no] : NULL;
        place->skips = entropy->skip_tables[component->ac_tbl_no];
    }
    ((cjpeg_report *)library->client_data)->entropy = entropy;
    library->entropy->decode_mcu = decode_mcu;
    return true;
}

#endif
