// SPDX-License-Identifier: Apache-2.0

#ifndef CCOEFFICIENTS_H
#define CCOEFFICIENTS_H

#include <stddef.h>
#include <stdint.h>

// The coefficients of a JPEG as libjpeg reads them, to check that transforms are lossless.

typedef struct ccoefficients ccoefficients;

typedef struct ccoefficients_component {
    /// The sampling factors, across and down.
    int horizontal;
    int vertical;
    /// The number of blocks, without padding to whole units.
    int columns;
    int rows;
    /// The quantization table, in rows.
    uint16_t table[64];
} ccoefficients_component;

/// Returns NULL if libjpeg fails.
ccoefficients *_Nullable ccoefficients_read(const uint8_t *_Nonnull bytes, size_t count);
void ccoefficients_free(ccoefficients *_Nullable image);

int ccoefficients_width(const ccoefficients *_Nonnull image);
int ccoefficients_height(const ccoefficients *_Nonnull image);
int ccoefficients_component_count(const ccoefficients *_Nonnull image);
/// Returns the number of the colour space in libjpeg.
int ccoefficients_color_space(const ccoefficients *_Nonnull image);
ccoefficients_component ccoefficients_component_at(const ccoefficients *_Nonnull image, int index);
/// Returns the blocks of a row, with 64 numbers each.
const int16_t *_Nonnull ccoefficients_row(ccoefficients *_Nonnull image, int component, int row);

#endif
