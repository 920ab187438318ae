// SPDX-License-Identifier: Apache-2.0

#ifndef CJPEG_COEFFICIENTS_H
#define CJPEG_COEFFICIENTS_H

#include "report.h"

/// A mapping of blocks between the old and the new image, and of the 64 coefficients within a block.
///
/// It first swaps rows and columns, and then reverses columns and rows.
typedef struct cjpeg_turn {
    bool swaps_sides;
    bool reverses_columns;
    bool reverses_rows;
    /// The numbers of a component's blocks that a reversal covers, across and down. These blocks begin at the top left
    /// of the turned image.
    JDIMENSION columns;
    JDIMENSION rows;
    /// The offset of the new image within the turned one, in blocks.
    JDIMENSION left;
    JDIMENSION top;
} cjpeg_turn;

/// Writes `count` rows of `width` blocks of the new image, starting at row `first`.
void cjpeg_coefficients_turn(
    j_decompress_ptr library, const cjpeg_turn *turn, jvirt_barray_ptr from, jvirt_barray_ptr to, JDIMENSION first,
    JDIMENSION count, JDIMENSION width);

#endif
