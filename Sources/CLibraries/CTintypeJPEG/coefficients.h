#ifndef CJPEG_COEFFICIENTS_H
#define CJPEG_COEFFICIENTS_H

#include "report.h"

/// Which block of the old image becomes which of the new one, and what becomes of its 64 coefficients.
///
/// Rows and columns change places first; then columns and rows are reversed.
typedef struct cjpeg_turn {
    bool swaps_sides;
    bool reverses_columns;
    bool reverses_rows;
    /// The blocks of a component in each direction, of those that are reversed; they begin at the top left of the
    /// turned image.
    JDIMENSION columns;
    JDIMENSION rows;
    /// The start of the new image in the turned one, in blocks.
    JDIMENSION left;
    JDIMENSION top;
} cjpeg_turn;

/// Writes `count` rows of `width` blocks of the new image, from `first` on.
void cjpeg_coefficients_turn(
    j_decompress_ptr library, const cjpeg_turn *turn, jvirt_barray_ptr from, jvirt_barray_ptr to, JDIMENSION first,
    JDIMENSION count, JDIMENSION width);

#endif
