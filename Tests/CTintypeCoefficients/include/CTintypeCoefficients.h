#ifndef CCOEFFICIENTS_H
#define CCOEFFICIENTS_H

#include <stddef.h>
#include <stdint.h>

// The coefficients of a JPEG, as libjpeg reads them: what is compared where nothing may be lost.

typedef struct ccoefficients ccoefficients;

typedef struct ccoefficients_component {
    /// How often it is sampled, across and down.
    int horizontal;
    int vertical;
    /// Its blocks, without those that fill up units.
    int columns;
    int rows;
    /// What its coefficients are multiples of, in rows.
    uint16_t table[64];
} ccoefficients_component;

/// Returns NULL where libjpeg gives up.
ccoefficients *_Nullable ccoefficients_read(const uint8_t *_Nonnull bytes, size_t count);
void ccoefficients_free(ccoefficients *_Nullable image);

int ccoefficients_width(const ccoefficients *_Nonnull image);
int ccoefficients_height(const ccoefficients *_Nonnull image);
int ccoefficients_component_count(const ccoefficients *_Nonnull image);
/// The library's number of the colour space.
int ccoefficients_color_space(const ccoefficients *_Nonnull image);
ccoefficients_component ccoefficients_component_at(const ccoefficients *_Nonnull image, int index);
/// The blocks of a row, 64 numbers each.
const int16_t *_Nonnull ccoefficients_row(ccoefficients *_Nonnull image, int component, int row);

#endif
