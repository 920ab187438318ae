#ifndef CPIXELKERNELS_SAMPLES_H
#define CPIXELKERNELS_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

// Stored samples to numbers and back. Numbers are in the range of the bytes, 0 to 255.

/// Makes premultiplied numbers of `count` pixels with straight alpha.
void cpixels_premultiply(const uint8_t *_Nonnull rgba, float *_Nonnull numbers, size_t count);

/// Makes pixels with straight alpha of `count` premultiplied ones, cut to the range and rounded.
///
/// A pixel whose alpha rounds to 0 has no colour: all its samples are 0.
void cpixels_unpremultiply(const float *_Nonnull numbers, uint8_t *_Nonnull rgba, size_t count);

/// Makes numbers of `count` samples, as they are.
void cpixels_to_numbers(const uint8_t *_Nonnull samples, float *_Nonnull numbers, size_t count);

/// Makes samples of `count` numbers, cut to the range and rounded.
void cpixels_to_samples(const float *_Nonnull numbers, uint8_t *_Nonnull samples, size_t count);

#endif
