// SPDX-License-Identifier: Apache-2.0

#include "CTintypePNGDeflate.h"

#if ISAL
#include <isa-l/igzip_lib.h>
#endif
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    window_mask = cpngdeflate_window - 1,
    hash_bits = 15,
    /// This table is small enough for the cache.
    fast_hash_bits = 13,
    pixel_hash_bits = 14,
    /// The numbers of hashed bytes. Eight bytes find long matches early. Short matches that save bits are near.
    long_bytes = 8,
    short_bytes = 5,
    pixel_bytes = 3,
    max_match = 258,
    /// A match can begin only if so many bytes follow, because its bytes are loaded at once.
    lookahead = 8,
    /// The maximum number of literals and matches in a block.
    token_limit = 24 << 10,
    /// After every so many tokens the block may end, if its codes suit the latest tokens badly.
    check_step = 2 << 10,
    /// The bits that a split must save: about the cost of a block's code lengths.
    split_cost = 600,
    /// The number of bytes in one search for the cheapest tokens, and the maximum number of matches stored for it.
    piece_limit = 32 << 10,
    found_limit = 8 * piece_limit,
    /// The number of tokens from which on their costs are worth learning.
    sample_limit = 1024,
    literal_count = 286,
    distance_count = 30,
    end_of_block = 256,
    /// The unit of costs is 1/16 bit.
    one_bit = 16,
    /// The cost that a match must save, because additional matches lengthen every code a little.
    margin = one_bit,
    /// Marks the token of a match. Its lower bits are the length, and its upper bits the distance minus one.
    match_flag = 0x200,
    length_mask = 0x1FF,
};

#if ISAL
typedef enum { way_stored, way_isal, way_fast, way_lazy, way_optimal } way;
#else
typedef enum { way_stored, way_fast, way_lazy, way_optimal } way;
#endif

typedef struct {
    way way;
    /// The number of earlier positions to compare, or in the fast way the step between bytes without matches. Then the
    /// length of a match that ends the search.
    int depth;
    unsigned nice;
    /// Whether to compare also the last position with the same five bytes.
    bool takes_short;
    /// The number of searches for the cheapest tokens. Each search uses the costs of the previous result.
    int rounds;
} effort;

#if ISAL
#define LEVEL_1 \
    { way_isal, 0, 0, false, 0 }
#else
#define LEVEL_1 \
    { way_fast, 4, 0, false, 0 }
#endif

static const effort efforts[10] = {
    {way_stored, 0, 0, false, 0},    LEVEL_1,
    {way_fast, 2, 0, false, 0},      {way_lazy, 1, 32, false, 0},
    {way_lazy, 1, 32, true, 0},      {way_lazy, 2, 32, true, 0},
    {way_lazy, 4, 32, true, 0},      {way_optimal, 4, 64, true, 1},
    {way_optimal, 16, 128, true, 2}, {way_optimal, 32, 258, true, 3},
};

typedef struct {
    uint16_t bits;
    uint8_t length;
} code;

typedef struct {
    unsigned length;
    unsigned distance;
    int gain;
} match;

struct cpngdeflate {
    effort effort;
    uint32_t line_size;
    /// The position of the next strip. Positions can overflow, because only their differences matter.
    uint32_t position;

    uint8_t *output;
    uint64_t bits;
    unsigned bit_count;

    uint16_t literal_costs[256];
    uint16_t length_costs[max_match + 1];
    uint16_t distance_costs[distance_count];
    uint32_t literal_counts[literal_count];
    uint32_t distance_counts[distance_count];
    uint32_t tokens[token_limit];
    uint32_t token_count;
    /// The number of tokens at which to check the block, and the counts and bits of the tokens before the last step.
    uint32_t next_check;
    uint32_t checked_literals[literal_count];
    uint32_t checked_distances[distance_count];
    float checked_bits;

    /// The last position of each hash of eight bytes. For each position, the low bits of the previous one with the same
    /// hash.
    uint32_t heads[1 << hash_bits];
    uint16_t links[cpngdeflate_window];
    /// The last position of each hash of five bytes, and of each hash of three.
    uint32_t short_heads[1 << hash_bits];
    uint32_t pixel_heads[1 << pixel_hash_bits];
    union {
        /// The cumulative cost of the literals from the beginning of a strip.
        uint32_t sums[cpngdeflate_strip_limit + 1];
        /// The matches of a piece, in order of length for each position. Their tokens have no flag.
        uint32_t found[found_limit];
    };
    /// For each position of a piece, the number of matches up to and including it.
    uint32_t found_ends[piece_limit];
    /// The minimum cost of reaching each byte of a piece, and the last token on the way.
    uint32_t costs[piece_limit + 1];
    uint32_t steps[piece_limit + 1];

#if ISAL
    struct isal_zstream isal;
    uint8_t isal_level[ISAL_DEF_LVL1_DEFAULT];
#endif
};

// MARK: RFC 1951, section 3.2.5

static const uint16_t length_bases[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                          31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extras[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t distance_bases[distance_count] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                        33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                        1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};

INLINE unsigned length_symbol(unsigned length) {
    length -= 3;
    if (length < 8) return length;
    if (length == max_match - 3) return 28;
    unsigned top = 31 - (unsigned)__builtin_clz(length);
    return 4 * (top - 1) + ((length >> (top - 2)) & 3);
}

INLINE unsigned distance_symbol(unsigned distance) {
    distance -= 1;
    if (distance < 4) return distance;
    unsigned top = 31 - (unsigned)__builtin_clz(distance);
    return 2 * top + ((distance >> (top - 1)) & 1);
}

INLINE unsigned distance_extra(unsigned symbol) {
    return symbol < 4 ? 0 : symbol / 2 - 1;
}

// MARK: Codes

/// Computes the code lengths of a Huffman tree, with at most `limit` bits.
static void make_lengths(const uint32_t *counts, unsigned size, unsigned limit, uint8_t *lengths) {
    typedef struct {
        uint32_t count;
        uint16_t symbol;
    } leaf;
    leaf leaves[literal_count];
    unsigned used = 0;
    memset(lengths, 0, size);
    for (unsigned symbol = 0; symbol < size; symbol++) {
        if (counts[symbol]) leaves[used++] = (leaf){counts[symbol], (uint16_t)symbol};
    }
    if (used < 2) {
        if (used == 1) lengths[leaves[0].symbol] = 1;
        return;
    }
    static const unsigned gaps[] = {132, 40, 13, 4, 1};
    for (unsigned pass = 0; pass < 5; pass++) {
        unsigned gap = gaps[pass];
        for (unsigned index = gap; index < used; index++) {
            leaf moved = leaves[index];
            unsigned place = index;
            for (; place >= gap && leaves[place - gap].count > moved.count; place -= gap) {
                leaves[place] = leaves[place - gap];
            }
            leaves[place] = moved;
        }
    }
    // Leaves and inner nodes form two sorted queues. Each step joins the two lightest heads.
    uint32_t weights[literal_count];
    uint16_t parents[2 * literal_count];
    unsigned next_leaf = 0, next_node = 0;
    for (unsigned node = 0; node < used - 1; node++) {
        weights[node] = 0;
        for (int child = 0; child < 2; child++) {
            if (next_leaf < used && (next_node >= node || leaves[next_leaf].count <= weights[next_node])) {
                weights[node] += leaves[next_leaf].count;
                parents[next_leaf++] = (uint16_t)node;
            } else {
                weights[node] += weights[next_node];
                parents[used + next_node++] = (uint16_t)node;
            }
        }
    }
    uint16_t depths[literal_count];
    depths[used - 2] = 0;
    for (unsigned node = used - 2; node > 0; node--) depths[node - 1] = depths[parents[used + node - 1]] + 1;
    unsigned of_length[16] = {0};
    for (unsigned index = 0; index < used; index++) {
        unsigned length = depths[parents[index]] + 1u;
        of_length[length < limit ? length : limit]++;
    }
    // Codes that were shortened to the limit overfill the code space. For each, lengthen a shorter code to make room
    // for another.
    uint32_t space = 0;
    for (unsigned length = 1; length <= limit; length++) space += of_length[length] << (limit - length);
    for (; space > 1u << limit; space--) {
        unsigned length = limit - 1;
        while (!of_length[length]) length--;
        of_length[length]--;
        of_length[length + 1] += 2;
        of_length[limit]--;
    }
    unsigned index = 0;
    for (unsigned length = limit; length > 0; length--) {
        for (unsigned left = of_length[length]; left > 0; left--) lengths[leaves[index++].symbol] = (uint8_t)length;
    }
}

/// Assigns the codes to their lengths, with the first bit lowest (RFC 1951, section 3.2.2).
static void make_codes(const uint8_t *lengths, unsigned size, code *codes) {
    unsigned of_length[16] = {0}, next[16] = {0};
    for (unsigned symbol = 0; symbol < size; symbol++) of_length[lengths[symbol]]++;
    of_length[0] = 0;
    for (unsigned length = 1; length < 16; length++) next[length] = (next[length - 1] + of_length[length - 1]) << 1;
    for (unsigned symbol = 0; symbol < size; symbol++) {
        unsigned length = lengths[symbol];
        unsigned value = length > 0 ? next[length]++ : 0, bits = 0;
        for (unsigned place = 0; place < length; place++) bits |= (value >> place & 1) << (length - 1 - place);
        codes[symbol] = (code){(uint16_t)bits, (uint8_t)length};
    }
}

// MARK: Bits

INLINE void put(cpngdeflate *stream, uint64_t value, unsigned count) {
    stream->bits |= value << stream->bit_count;
    stream->bit_count += count;
}

INLINE void put_code(cpngdeflate *stream, code code) {
    put(stream, code.bits, code.length);
}

/// Writes the complete bytes. At most seven bits remain.
INLINE void flush(cpngdeflate *stream) {
    for (int index = 0; index < 8; index++) stream->output[index] = (uint8_t)(stream->bits >> (8 * index));
    stream->output += stream->bit_count >> 3;
    stream->bits >>= stream->bit_count & ~7u;
    stream->bit_count &= 7;
}

// MARK: Costs

static uint16_t cost(uint32_t count, float bits_of_all) {
    float bits = count ? bits_of_all - __builtin_log2f((float)count) : bits_of_all + 1;
    return (uint16_t)(one_bit * bits + 0.5f);
}

/// Learns the costs of codes from counts of their use.
static void learn_from(cpngdeflate *stream, const uint32_t *literal_counts, const uint32_t *distance_counts) {
    uint32_t literals = 1, distances = 1;
    for (unsigned symbol = 0; symbol < literal_count; symbol++) literals += literal_counts[symbol];
    for (unsigned symbol = 0; symbol < distance_count; symbol++) distances += distance_counts[symbol];
    float literal_bits = __builtin_log2f((float)literals), distance_bits = __builtin_log2f((float)distances);
    for (unsigned byte = 0; byte < 256; byte++) {
        stream->literal_costs[byte] = cost(literal_counts[byte], literal_bits);
    }
    for (unsigned length = 3; length <= max_match; length++) {
        unsigned symbol = length_symbol(length);
        stream->length_costs[length] =
            (uint16_t)(cost(literal_counts[257 + symbol], literal_bits) + length_extras[symbol] * one_bit);
    }
    for (unsigned symbol = 0; symbol < distance_count; symbol++) {
        stream->distance_costs[symbol] =
            (uint16_t)(cost(distance_counts[symbol], distance_bits) + distance_extra(symbol) * one_bit);
    }
}

/// Learns the costs of codes from the tokens of the block so far.
static void learn(cpngdeflate *stream) {
    learn_from(stream, stream->literal_counts, stream->distance_counts);
}

/// Sets initial costs for a stream without tokens.
static void assume(cpngdeflate *stream) {
    for (unsigned byte = 0; byte < 256; byte++) stream->literal_costs[byte] = 7 * one_bit;
    for (unsigned length = 3; length <= max_match; length++) {
        stream->length_costs[length] = (uint16_t)((7 + length_extras[length_symbol(length)]) * one_bit);
    }
    for (unsigned symbol = 0; symbol < distance_count; symbol++) {
        stream->distance_costs[symbol] = (uint16_t)((5 + distance_extra(symbol)) * one_bit);
    }
}

INLINE int match_cost(const cpngdeflate *stream, unsigned length, unsigned distance) {
    return stream->length_costs[length] + stream->distance_costs[distance_symbol(distance)];
}

// MARK: Blocks

/// Writes the code lengths of a block (RFC 1951, section 3.2.7).
static void put_lengths(cpngdeflate *stream, const uint8_t *literal_lengths, const uint8_t *distance_lengths) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned literals = literal_count, distances = distance_count;
    while (literals > 257 && !literal_lengths[literals - 1]) literals--;
    while (distances > 1 && !distance_lengths[distances - 1]) distances--;
    uint8_t lengths[literal_count + distance_count];
    memcpy(lengths, literal_lengths, literals);
    memcpy(lengths + literals, distance_lengths, distances);

    // Repeated lengths become a symbol with a number.
    uint8_t symbols[literal_count + distance_count], numbers[literal_count + distance_count];
    uint32_t counts[19] = {0};
    unsigned size = 0;
    for (unsigned index = 0; index < literals + distances;) {
        uint8_t length = lengths[index];
        unsigned run = 1;
        while (index + run < literals + distances && lengths[index + run] == length) run++;
        index += run;
        if (length > 0) {
            symbols[size] = length;
            numbers[size++] = 0;
            run--;
        }
        while (run >= 3) {
            unsigned most = length > 0 ? 6 : run < 11 ? 10 : 138;
            unsigned part = run < most ? run : most;
            symbols[size] = length > 0 ? 16 : part < 11 ? 17 : 18;
            numbers[size++] = (uint8_t)(part - (length == 0 && part >= 11 ? 11 : 3));
            run -= part;
        }
        for (; run > 0; run--) {
            symbols[size] = length;
            numbers[size++] = 0;
        }
    }
    for (unsigned index = 0; index < size; index++) counts[symbols[index]]++;
    uint8_t code_lengths[19];
    code codes[19];
    make_lengths(counts, 19, 7, code_lengths);
    make_codes(code_lengths, 19, codes);
    unsigned used = 19;
    while (used > 4 && !code_lengths[order[used - 1]]) used--;
    put(stream, literals - 257, 5);
    put(stream, distances - 1, 5);
    put(stream, used - 4, 4);
    flush(stream);
    for (unsigned index = 0; index < used; index++) {
        put(stream, code_lengths[order[index]], 3);
        flush(stream);
    }
    for (unsigned index = 0; index < size; index++) {
        put_code(stream, codes[symbols[index]]);
        if (symbols[index] >= 16) put(stream, numbers[index], symbols[index] == 16 ? 2 : symbols[index] == 17 ? 3 : 7);
        flush(stream);
    }
}

static void clear_tokens(cpngdeflate *stream) {
    stream->token_count = 0;
    stream->next_check = check_step;
    memset(stream->literal_counts, 0, sizeof(stream->literal_counts));
    memset(stream->distance_counts, 0, sizeof(stream->distance_counts));
}

/// Writes the current tokens as a block, and learns from them.
static void end_block(cpngdeflate *stream, bool is_last) {
    uint8_t literal_lengths[literal_count], distance_lengths[distance_count];
    code literals[literal_count], distances[distance_count];
    stream->literal_counts[end_of_block] = 1;
    make_lengths(stream->literal_counts, literal_count, 15, literal_lengths);
    make_lengths(stream->distance_counts, distance_count, 15, distance_lengths);
    make_codes(literal_lengths, literal_count, literals);
    make_codes(distance_lengths, distance_count, distances);
    put(stream, is_last, 1);
    put(stream, 2, 2);
    put_lengths(stream, literal_lengths, distance_lengths);
    for (uint32_t index = 0; index < stream->token_count; index++) {
        uint32_t token = stream->tokens[index];
        if (token < match_flag) {
            put_code(stream, literals[token]);
            if (stream->bit_count > 48) flush(stream);
            continue;
        }
        unsigned length = token & length_mask, distance = (token >> 16) + 1;
        unsigned length_code = length_symbol(length), distance_code = distance_symbol(distance);
        // Together with the rest from a flush, a match takes at most 55 bits.
        flush(stream);
        put_code(stream, literals[257 + length_code]);
        put(stream, length - length_bases[length_code], length_extras[length_code]);
        put_code(stream, distances[distance_code]);
        put(stream, distance - distance_bases[distance_code], distance_extra(distance_code));
        flush(stream);
    }
    flush(stream);
    put_code(stream, literals[end_of_block]);
    flush(stream);
    learn(stream);
    clear_tokens(stream);
}

/// Approximates the logarithm to within 0.01.
INLINE float quick_log2(uint32_t number) {
    float mantissa = (float)number;
    uint32_t bits;
    memcpy(&bits, &mantissa, sizeof(bits));
    const float exponent = (float)(int)(bits >> 23) - 127;
    bits = (bits & 0x7FFFFF) | 0x3F800000;
    memcpy(&mantissa, &bits, sizeof(bits));
    return exponent + (2 - mantissa / 3) * mantissa - 5.0f / 3;
}

/// Returns the number of bits that optimal codes for the counts would take.
static float bits_of_counts(const uint32_t *counts, unsigned size) {
    uint32_t all = 0;
    float bits = 0;
    for (unsigned symbol = 0; symbol < size; symbol++) {
        if (counts[symbol] == 0) continue;
        all += counts[symbol];
        bits -= (float)counts[symbol] * quick_log2(counts[symbol]);
    }
    return all > 0 ? bits + (float)all * quick_log2(all) : 0;
}

static float bits_of_codes(const uint32_t *literals, const uint32_t *distances) {
    return bits_of_counts(literals, literal_count) + bits_of_counts(distances, distance_count);
}

/// Ends the block before its last step if separate codes for that step save bits. Otherwise ends it after that step if
/// it is full.
static void check(cpngdeflate *stream) {
    float bits = bits_of_codes(stream->literal_counts, stream->distance_counts);
    if (stream->token_count > check_step) {
        uint32_t literals[literal_count], distances[distance_count], tokens[check_step];
        for (unsigned symbol = 0; symbol < literal_count; symbol++) {
            literals[symbol] = stream->literal_counts[symbol] - stream->checked_literals[symbol];
        }
        for (unsigned symbol = 0; symbol < distance_count; symbol++) {
            distances[symbol] = stream->distance_counts[symbol] - stream->checked_distances[symbol];
        }
        float step_bits = bits_of_codes(literals, distances);
        if (stream->checked_bits + step_bits + split_cost < bits) {
            stream->token_count -= check_step;
            memcpy(tokens, stream->tokens + stream->token_count, sizeof(tokens));
            memcpy(stream->literal_counts, stream->checked_literals, sizeof(literals));
            memcpy(stream->distance_counts, stream->checked_distances, sizeof(distances));
            end_block(stream, false);
            stream->token_count = check_step;
            memcpy(stream->tokens, tokens, sizeof(tokens));
            memcpy(stream->literal_counts, literals, sizeof(literals));
            memcpy(stream->distance_counts, distances, sizeof(distances));
            learn(stream);
            bits = step_bits;
        } else if (stream->token_count == token_limit) {
            end_block(stream, false);
            return;
        }
    }
    memcpy(stream->checked_literals, stream->literal_counts, sizeof(stream->literal_counts));
    memcpy(stream->checked_distances, stream->distance_counts, sizeof(stream->distance_counts));
    stream->checked_bits = bits;
    stream->next_check = stream->token_count + check_step;
}

INLINE void add_literal(cpngdeflate *stream, uint8_t byte) {
    if (stream->token_count == stream->next_check) check(stream);
    stream->tokens[stream->token_count++] = byte;
    stream->literal_counts[byte]++;
}

INLINE void add_match(cpngdeflate *stream, unsigned length, unsigned distance) {
    if (stream->token_count == stream->next_check) check(stream);
    stream->tokens[stream->token_count++] = (distance - 1) << 16 | match_flag | length;
    stream->literal_counts[257 + length_symbol(length)]++;
    stream->distance_counts[distance_symbol(distance)]++;
}

// MARK: Matches

INLINE uint64_t load8(const uint8_t *from) {
    uint64_t value;
    memcpy(&value, from, 8);
    return value;
}

INLINE bool are_equal(const uint8_t *first, const uint8_t *second, int count) {
    return memcmp(first, second, (size_t)count) == 0;
}

INLINE uint32_t hash(uint64_t bytes, int count, int bits) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    return (uint32_t)((bytes << (64 - 8 * count)) * 0x9E3779B97F4A7C15 >> (64 - bits));
}

/// Returns the length of a match, of which `known` bytes are already known to be equal.
INLINE unsigned match_length(const uint8_t *first, const uint8_t *second, unsigned known, unsigned limit) {
    unsigned length = known;
    for (; length + 8 <= limit; length += 8) {
        uint64_t difference = load8(first + length) ^ load8(second + length);
        if (difference == 0) continue;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        difference = __builtin_bswap64(difference);
#endif
        return length + (unsigned)(__builtin_ctzll(difference) >> 3);
    }
    while (length < limit && first[length] == second[length]) length++;
    return length;
}

INLINE unsigned longest(size_t index, size_t end) {
    return end - index < max_match ? (unsigned)(end - index) : max_match;
}

/// A strip and the bytes before it.
typedef struct strip {
    const uint8_t *bytes;
    size_t start;
    size_t end;
    /// The position of the first byte.
    uint32_t base;
} strip;

INLINE bool is_in_reach(unsigned distance, size_t index) {
    return distance > 0 && distance <= cpngdeflate_window && distance <= index;
}

/// Earlier positions that may begin a match.
typedef struct {
    uint32_t pixel;
    uint32_t near;
    uint32_t candidate;
} places;

/// Adds a position to the tables, and returns the earlier ones.
INLINE places enter(cpngdeflate *stream, const strip *strip, size_t index) {
    uint64_t value = load8(strip->bytes + index);
    uint32_t position = strip->base + (uint32_t)index;
    uint32_t *head = &stream->heads[hash(value, long_bytes, hash_bits)];
    uint32_t *pixel_head = &stream->pixel_heads[hash(value, pixel_bytes, pixel_hash_bits)];
    places places = {*pixel_head, position, *head};
    stream->links[position & window_mask] = (uint16_t)*head;
    *head = position;
    *pixel_head = position;
    if (stream->effort.takes_short) {
        uint32_t *short_head = &stream->short_heads[hash(value, short_bytes, hash_bits)];
        places.near = *short_head;
        *short_head = position;
    }
    return places;
}

/// Returns the position before one with the same hash.
INLINE uint32_t before(const cpngdeflate *stream, uint32_t position) {
    return position - (uint16_t)(position - stream->links[position & window_mask]);
}

/// Replaces the best match if another one is longer and saves more. Returns whether the search can end.
INLINE bool improve(
    const cpngdeflate *stream, const strip *strip, size_t index, unsigned distance, unsigned known, match *best,
    unsigned *best_length) {
    const uint8_t *here = strip->bytes + index;
    unsigned limit = longest(index, strip->end);
    unsigned length = match_length(here, here - distance, known, limit);
    if (length <= *best_length) return false;
    *best_length = length;
    const uint32_t *sum = stream->sums + (index - strip->start);
    int gain = (int)(sum[length] - sum[0]) - match_cost(stream, length, distance);
    if (gain <= best->gain) return false;
    *best = (match){length, distance, gain};
    return length >= stream->effort.nice || length == limit;
}

/// Adds a position to the tables, and finds the match there that saves the most bits. It saves more than `least`, or
/// has length 0 if there is no such match.
static match find(cpngdeflate *stream, const strip *strip, size_t index, int least, int depth) {
    match best = {0, 0, least};
    if (index + lookahead > strip->end) return best;
    const uint8_t *here = strip->bytes + index;
    unsigned limit = longest(index, strip->end), best_length = 2, last = 0;
    uint32_t position = strip->base + (uint32_t)index;
    places places = enter(stream, strip, index);
    if (index > 0 && are_equal(here, here - 1, 3) && improve(stream, strip, index, 1, 3, &best, &best_length))
        return best;
    const unsigned nearest[3] = {position - places.pixel, stream->line_size, position - places.near};
    for (int place = 0; place < 3 && best_length < limit; place++) {
        unsigned distance = nearest[place];
        if (is_in_reach(distance, index) && are_equal(here, here - distance, 3)
            && improve(stream, strip, index, distance, 3, &best, &best_length)) {
            return best;
        }
    }
    for (uint32_t candidate = places.candidate; depth > 0 && best_length < limit; depth--) {
        unsigned distance = position - candidate;
        if (distance <= last || !is_in_reach(distance, index)) break;
        last = distance;
        const uint8_t *there = here - distance;
        if (here[best_length] == there[best_length] && are_equal(here, there, 4)
            && improve(stream, strip, index, distance, 4, &best, &best_length)) {
            break;
        }
        candidate = before(stream, candidate);
    }
    return best;
}

// MARK: Strips

static int cost_of_literals(const cpngdeflate *stream, const uint8_t *bytes, unsigned count) {
    int sum = 0;
    for (unsigned index = 0; index < count; index++) sum += stream->literal_costs[bytes[index]];
    return sum;
}

/// Adds runs, and matches with the last position of the same eight bytes or, failing that, of the same three.
static void add_fast(cpngdeflate *stream, const strip *strip) {
    size_t index = strip->start;
    unsigned misses = 0;
    while (index + lookahead <= strip->end) {
        const uint8_t *here = strip->bytes + index;
        uint64_t value = load8(here);
        unsigned limit = longest(index, strip->end), distance = 1, length = 0;
        if (index > 0 && are_equal(here, here - 1, 3)) {
            length = match_length(here, here - 1, 3, limit);
            if ((int)length * stream->literal_costs[*here] <= match_cost(stream, length, 1)) length = 0;
        }
        uint32_t position = strip->base + (uint32_t)index;
        uint32_t *const heads[2] = {
            &stream->heads[hash(value, long_bytes, fast_hash_bits)],
            &stream->pixel_heads[hash(value, pixel_bytes, pixel_hash_bits)],
        };
        const unsigned known[2] = {long_bytes, pixel_bytes};
        for (int place = 0; place < 2 && length == 0; place++) {
            distance = position - *heads[place];
            *heads[place] = position;
            if (!is_in_reach(distance, index) || !are_equal(here, here - distance, (int)known[place])) continue;
            length = match_length(here, here - distance, known[place], limit);
            // Long matches are always worth their cost.
            if (length < 32
                && cost_of_literals(stream, here, length) <= match_cost(stream, length, distance) + place * margin) {
                length = 0;
            }
        }
        if (length > 0) {
            add_match(stream, length, distance);
            index += length;
            misses = 0;
            continue;
        }
        // Bytes without matches come in groups, so skip some.
        unsigned count = ++misses > 16 ? (unsigned)stream->effort.depth : 1;
        for (unsigned place = 0; place < count; place++) add_literal(stream, here[place]);
        index += count;
    }
    for (; index < strip->end; index++) add_literal(stream, strip->bytes[index]);
}

/// Adds a match unless one at the next byte saves more.
static void add_lazy(cpngdeflate *stream, const strip *strip) {
    size_t index = strip->start;
    while (index < strip->end) {
        match best = find(stream, strip, index, margin, stream->effort.depth);
        if (best.length == 0) {
            add_literal(stream, strip->bytes[index++]);
            continue;
        }
        size_t next = index + 1;
        while (best.length < stream->effort.nice && next < strip->end) {
            // A later match seldom improves on a good one, so search less for it.
            int depth = best.length < 8 ? stream->effort.depth : (stream->effort.depth + 3) / 4;
            match later = find(stream, strip, next, best.gain, depth);
            next++;
            if (later.length == 0) break;
            add_literal(stream, strip->bytes[index++]);
            best = later;
        }
        add_match(stream, best.length, best.distance);
        index += best.length;
        // Few positions within runs and long matches are useful, so enter only the last two.
        if ((best.distance < 4 || best.length > 64) && next + 2 < index) next = index - 2;
        for (; next < index && next + lookahead <= strip->end; next++) (void)enter(stream, strip, next);
    }
}

/// Finds the matches of a piece.
static void find_all(cpngdeflate *stream, const strip *strip) {
    size_t count = strip->end - strip->start;
    uint32_t found = 0;
    for (size_t offset = 0; offset < count; offset++) {
        size_t index = strip->start + offset;
        const uint8_t *here = strip->bytes + index;
        stream->found_ends[offset] = found;
        if (index + lookahead > strip->end) continue;
        unsigned limit = longest(index, strip->end), longest_so_far = 2, last = 0;
        uint32_t position = strip->base + (uint32_t)index;
        places places = enter(stream, strip, index);
        uint32_t candidate = places.candidate;
        const unsigned nearest[4] = {1, position - places.pixel, stream->line_size, position - places.near};
        for (int place = 0; place < 4 + stream->effort.depth && longest_so_far < limit; place++) {
            unsigned distance = place < 4 ? nearest[place] : position - candidate;
            bool is_near = is_in_reach(distance, index);
            if (place >= 4) {
                if (distance <= last || !is_near) break;
                last = distance;
                candidate = before(stream, candidate);
            }
            if (!is_near) continue;
            const uint8_t *there = here - distance;
            if (here[longest_so_far] != there[longest_so_far] || !are_equal(here, there, 3)) continue;
            unsigned length = match_length(here, there, 3, limit);
            if (length <= longest_so_far || found == found_limit) continue;
            stream->found[found++] = (distance - 1) << 16 | length;
            longest_so_far = length;
        }
        stream->found_ends[offset] = found;
        if (longest_so_far < stream->effort.nice) continue;
        for (size_t next = index + 1; next < index + longest_so_far; next++) {
            stream->found_ends[next - strip->start] = found;
            if (next + lookahead <= strip->end) (void)enter(stream, strip, next);
        }
        offset += longest_so_far - 1;
    }
}

/// Finds the tokens of a piece with the lowest total cost. Stores them in `costs`, the last one first.
///
/// Returns the number of tokens.
static uint32_t find_path(cpngdeflate *stream, const strip *strip) {
    size_t count = strip->end - strip->start;
    uint32_t *costs = stream->costs, *steps = stream->steps;
    memset(costs, 0xFF, (count + 1) * sizeof(*costs));
    costs[0] = 0;
    const uint8_t *here = strip->bytes + strip->start;
    uint32_t found = 0;
    for (size_t offset = 0; offset < count; offset++) {
        uint32_t cost = costs[offset], literal = cost + stream->literal_costs[here[offset]];
        if (literal < costs[offset + 1]) {
            costs[offset + 1] = literal;
            steps[offset + 1] = 1;
        }
        uint32_t end = stream->found_ends[offset];
        unsigned part = 3;
        for (; found < end; found++) {
            uint32_t match = stream->found[found];
            unsigned length = match & length_mask, distance = (match >> 16) + 1;
            uint32_t base = cost + stream->distance_costs[distance_symbol(distance)];
            // Use a long match as a whole.
            if (length >= stream->effort.nice) part = length;
            for (; part <= length; part++) {
                uint32_t whole = base + stream->length_costs[part];
                if (whole >= costs[offset + part]) continue;
                costs[offset + part] = whole;
                steps[offset + part] = (match & ~(uint32_t)length_mask) | part;
            }
        }
    }
    uint32_t number = 0;
    for (size_t offset = count; offset > 0; offset -= costs[number++] & length_mask) {
        uint32_t step = steps[offset];
        costs[number] = step;
    }
    return number;
}

/// Adds the tokens of a piece with the lowest total cost.
static void add_piece(cpngdeflate *stream, const strip *piece) {
    find_all(stream, piece);
    uint32_t steps = find_path(stream, piece);
    for (int round = 1; round < stream->effort.rounds; round++) {
        uint32_t literals[literal_count] = {0}, distances[distance_count] = {0};
        const uint8_t *here = piece->bytes + piece->start;
        for (uint32_t index = steps; index > 0;) {
            uint32_t step = stream->costs[--index];
            unsigned length = step & length_mask;
            if (length == 1) {
                literals[*here]++;
            } else {
                literals[257 + length_symbol(length)]++;
                distances[distance_symbol((step >> 16) + 1)]++;
            }
            here += length;
        }
        learn_from(stream, literals, distances);
        steps = find_path(stream, piece);
    }
    for (size_t index = piece->start; steps > 0;) {
        uint32_t step = stream->costs[--steps];
        unsigned length = step & length_mask;
        if (length == 1) {
            add_literal(stream, piece->bytes[index]);
        } else {
            add_match(stream, length, (step >> 16) + 1);
        }
        index += length;
    }
}

static void add_optimal(cpngdeflate *stream, const strip *strip) {
    for (size_t start = strip->start; start < strip->end;) {
        size_t end = strip->end - start < piece_limit ? strip->end : start + piece_limit;
        const struct strip piece = {strip->bytes, start, end, strip->base};
        if (stream->token_count > sample_limit) learn(stream);
        add_piece(stream, &piece);
        start = end;
    }
}

static void add_stored(cpngdeflate *stream, const strip *strip, bool is_last) {
    size_t index = strip->start;
    do {
        size_t count = strip->end - index < 65535 ? strip->end - index : 65535;
        bool is_end = is_last && index + count == strip->end;
        uint8_t header[5] = {is_end, (uint8_t)count, (uint8_t)(count >> 8), (uint8_t)~count, (uint8_t)(~count >> 8)};
        memcpy(stream->output, header, 5);
        memcpy(stream->output + 5, strip->bytes + index, count);
        stream->output += 5 + count;
        index += count;
    } while (index < strip->end);
}

#if ISAL
static void add_isal(cpngdeflate *stream, const strip *strip, bool is_last) {
    stream->isal.next_in = (uint8_t *)strip->bytes + strip->start;
    stream->isal.avail_in = (uint32_t)(strip->end - strip->start);
    stream->isal.next_out = stream->output;
    stream->isal.avail_out = cpngdeflate_output_limit;
    stream->isal.end_of_stream = is_last;
    isal_deflate(&stream->isal);
    stream->output = stream->isal.next_out;
}
#endif

// MARK: Streams

cpngdeflate *cpngdeflate_begin(void) {
    return malloc(sizeof(cpngdeflate));
}

void cpngdeflate_start(cpngdeflate *stream, int level, size_t line_size) {
    stream->effort = efforts[level < 0 ? 0 : level > 9 ? 9 : level];
    stream->line_size = line_size <= cpngdeflate_window ? (uint32_t)line_size : 0;
    // A position far from the zeros in the new table.
    stream->position = 1u << 31;
    // Clear only the tables in use, because compressing a small image takes less time than clearing all of them.
    if (stream->effort.way == way_fast) {
        memset(stream->heads, 0, sizeof(*stream->heads) << fast_hash_bits);
    } else if (stream->effort.way >= way_lazy) {
        memset(stream->heads, 0, sizeof(stream->heads));
    }
    if (stream->effort.takes_short) memset(stream->short_heads, 0, sizeof(stream->short_heads));
    if (stream->effort.way >= way_fast) memset(stream->pixel_heads, 0, sizeof(stream->pixel_heads));
    stream->bits = 0;
    stream->bit_count = 0;
    clear_tokens(stream);
    assume(stream);
#if ISAL
    if (stream->effort.way == way_isal) {
        isal_deflate_init(&stream->isal);
        stream->isal.level = 1;
        stream->isal.level_buf = stream->isal_level;
        stream->isal.level_buf_size = sizeof(stream->isal_level);
    }
#endif
}

void cpngdeflate_end(cpngdeflate *stream) {
    free(stream);
}

size_t cpngdeflate_size(void) {
    return sizeof(cpngdeflate);
}

size_t cpngdeflate_add(
    cpngdeflate *stream, const uint8_t *bytes, size_t history, size_t count, bool is_last, uint8_t *output) {
    strip strip = {bytes, history, history + count, stream->position - (uint32_t)history};
    stream->output = output;
    stream->position += (uint32_t)count;
    if (stream->token_count > sample_limit) learn(stream);
    if (stream->effort.way == way_lazy) {
        uint32_t sum = 0;
        for (size_t index = 0; index < count; index++) {
            stream->sums[index] = sum;
            sum += stream->literal_costs[bytes[history + index]];
        }
        stream->sums[count] = sum;
    }
    switch (stream->effort.way) {
    case way_stored: add_stored(stream, &strip, is_last); return (size_t)(stream->output - output);
#if ISAL
    case way_isal: add_isal(stream, &strip, is_last); return (size_t)(stream->output - output);
#endif
    case way_fast: add_fast(stream, &strip); break;
    case way_lazy: add_lazy(stream, &strip); break;
    case way_optimal: add_optimal(stream, &strip); break;
    }
    if (is_last) {
        end_block(stream, true);
        if (stream->bit_count > 0) *stream->output++ = (uint8_t)stream->bits;
    }
    return (size_t)(stream->output - output);
}
