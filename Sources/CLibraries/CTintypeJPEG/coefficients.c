// SPDX-License-Identifier: Apache-2.0

#include "coefficients.h"

#include <stdint.h>
#include <string.h>

// A row of a block. The numbers are unsigned, so that negation cannot overflow.
typedef uint16_t line __attribute__((vector_size(16)));

// MARK: Turns

// Transposes a block. One round shuffles each line with the line four below. This rotates the six bits of an index
// (row, column) by one place, so three rounds swap row and column.
static inline void swap_sides(line lines[8]) {
    for (int round = 0; round < 3; round++) {
        line next[8];
        for (int index = 0; index < 4; index++) {
            line first = lines[index], second = lines[index + 4];
            next[2 * index] = __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
            next[2 * index + 1] = __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(lines, next, sizeof(next));
    }
}

// A cosine of an odd frequency changes its sign if it is read from its end (T.81, A.3.3).
static inline void turn_block(const JCOEF *from, JCOEF *to, bool swaps, bool columns, bool rows) {
    const line odd = {0, 0xFFFF, 0, 0xFFFF, 0, 0xFFFF, 0, 0xFFFF};
    const line none = {0};
    line lines[8];
    memcpy(lines, from, sizeof(lines));
    if (swaps) swap_sides(lines);
    for (int row = 0; row < 8; row++) {
        line negated = columns ? odd : none;
        if (rows && row % 2 == 1) negated = ~negated;
        lines[row] = (lines[row] ^ negated) - negated;
    }
    memcpy(to, lines, sizeof(lines));
}

#define ROWS_AT_ONCE 8

// Always inlined with constant directions, so that the inner loops do not check them.
static inline __attribute__((always_inline)) void turn_rows(
    j_decompress_ptr library, const cjpeg_turn *turn, jvirt_barray_ptr from, jvirt_barray_ptr to, JDIMENSION first,
    JDIMENSION count, JDIMENSION width, bool swaps, bool columns, bool rows) {
    j_common_ptr common = (j_common_ptr)library;
    JBLOCKROW targets[ROWS_AT_ONCE];
    JDIMENSION places[ROWS_AT_ONCE];
    for (JDIMENSION row = 0; row < count; row++) {
        targets[row] = library->mem->access_virt_barray(common, to, first + row, 1, TRUE)[0];
        JDIMENSION place = turn->top + first + row;
        places[row] = rows ? turn->rows - 1 - place : place;
    }
    if (!swaps) {
        for (JDIMENSION row = 0; row < count; row++) {
            JBLOCKROW source = library->mem->access_virt_barray(common, from, places[row], 1, FALSE)[0];
            for (JDIMENSION column = 0; column < width; column++) {
                JDIMENSION place = turn->left + column;
                if (columns) place = turn->columns - 1 - place;
                turn_block(source[place], targets[row][column], false, columns, rows);
            }
        }
        return;
    }
    // Write several rows at once, because their sources are adjacent blocks.
    for (JDIMENSION column = 0; column < width; column++) {
        JDIMENSION place = turn->left + column;
        if (columns) place = turn->columns - 1 - place;
        JBLOCKROW source = library->mem->access_virt_barray(common, from, place, 1, FALSE)[0];
        for (JDIMENSION row = 0; row < count; row++) {
            turn_block(source[places[row]], targets[row][column], true, columns, rows);
        }
    }
}

void cjpeg_coefficients_turn(
    j_decompress_ptr library, const cjpeg_turn *turn, jvirt_barray_ptr from, jvirt_barray_ptr to, JDIMENSION first,
    JDIMENSION count, JDIMENSION width) {
    for (JDIMENSION done = 0; done < count; done += ROWS_AT_ONCE) {
        JDIMENSION left = count - done, rows = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE, row = first + done;
        switch (turn->swaps_sides << 2 | turn->reverses_columns << 1 | turn->reverses_rows) {
        case 0: turn_rows(library, turn, from, to, row, rows, width, false, false, false); break;
        case 1: turn_rows(library, turn, from, to, row, rows, width, false, false, true); break;
        case 2: turn_rows(library, turn, from, to, row, rows, width, false, true, false); break;
        case 3: turn_rows(library, turn, from, to, row, rows, width, false, true, true); break;
        case 4: turn_rows(library, turn, from, to, row, rows, width, true, false, false); break;
        case 5: turn_rows(library, turn, from, to, row, rows, width, true, false, true); break;
        case 6: turn_rows(library, turn, from, to, row, rows, width, true, true, false); break;
        default: turn_rows(library, turn, from, to, row, rows, width, true, true, true); break;
        }
    }
}

// MARK: Range

bool cjpeg_fit_standard_tables(const int16_t *coefficients, size_t blocks) {
    line bits = {0};
    for (size_t block = 0; block < blocks; block++) {
        line lines[8];
        memcpy(lines, coefficients + block * 64, sizeof(lines));
        for (int index = 0; index < 8; index++) {
            line negative = -(lines[index] >> 15);
            bits |= (lines[index] ^ negative) - negative;
        }
    }
    uint16_t all = 0;
    for (int index = 0; index < 8; index++) all |= bits[index];
    // The tables of T.81, annex K.3 have codes for ten bits. Differences of DC coefficients may have one more.
    return all < 1 << 10;
}
