// SPDX-License-Identifier: Apache-2.0

#include "adjustments.h"

#include <string.h>

#include "dispatch.h"

INLINE float limited(float value) {
    value = value > 0 ? value : 0;
    return value < 1 ? value : 1;
}

INLINE uint8_t sample(float value) {
    return (uint8_t)(int32_t)(limited(value) * 255 + 0.5f);
}

KERNEL void cpixels_to_planes(
    const uint8_t *restrict samples, size_t channels, float *restrict planes, size_t stride, size_t count) {
    const float scale = 1.0f / 255;
    float *restrict red = planes;
    float *restrict green = planes + stride;
    float *restrict blue = planes + 2 * stride;
    float *restrict alpha = planes + 3 * stride;
    if (channels == 4) {
        for (size_t pixel = 0; pixel < count; pixel++) {
            red[pixel] = samples[4 * pixel] * scale;
            green[pixel] = samples[4 * pixel + 1] * scale;
            blue[pixel] = samples[4 * pixel + 2] * scale;
            alpha[pixel] = samples[4 * pixel + 3] * scale;
        }
        return;
    }
    for (size_t pixel = 0; pixel < count; pixel++) alpha[pixel] = 1;
    if (channels == 3) {
        for (size_t pixel = 0; pixel < count; pixel++) {
            red[pixel] = samples[3 * pixel] * scale;
            green[pixel] = samples[3 * pixel + 1] * scale;
            blue[pixel] = samples[3 * pixel + 2] * scale;
        }
    } else {
        for (size_t pixel = 0; pixel < count; pixel++) {
            red[pixel] = green[pixel] = blue[pixel] = samples[pixel] * scale;
        }
    }
}

KERNEL void cpixels_from_planes(
    const float *restrict planes, size_t stride, uint8_t *restrict samples, size_t channels, size_t count) {
    const float *restrict red = planes;
    const float *restrict green = planes + stride;
    const float *restrict blue = planes + 2 * stride;
    const float *restrict alpha = planes + 3 * stride;
    if (channels == 4) {
        for (size_t pixel = 0; pixel < count; pixel++) {
            samples[4 * pixel] = sample(red[pixel]);
            samples[4 * pixel + 1] = sample(green[pixel]);
            samples[4 * pixel + 2] = sample(blue[pixel]);
            samples[4 * pixel + 3] = sample(alpha[pixel]);
        }
    } else if (channels == 3) {
        for (size_t pixel = 0; pixel < count; pixel++) {
            samples[3 * pixel] = sample(red[pixel]);
            samples[3 * pixel + 1] = sample(green[pixel]);
            samples[3 * pixel + 2] = sample(blue[pixel]);
        }
    } else {
        for (size_t pixel = 0; pixel < count; pixel++) samples[pixel] = sample(red[pixel]);
    }
}

KERNEL void cpixels_apply_matrix(const float *restrict matrix, float *restrict planes, size_t stride, size_t count) {
    float *restrict red = planes;
    float *restrict green = planes + stride;
    float *restrict blue = planes + 2 * stride;
    for (size_t pixel = 0; pixel < count; pixel++) {
        float r = red[pixel], g = green[pixel], b = blue[pixel];
        red[pixel] = matrix[0] * r + matrix[1] * g + matrix[2] * b + matrix[3];
        green[pixel] = matrix[4] * r + matrix[5] * g + matrix[6] * b + matrix[7];
        blue[pixel] = matrix[8] * r + matrix[9] * g + matrix[10] * b + matrix[11];
    }
}

// Adds the exponent of a float and a series (atanh) for its fraction in [sqrt(1/2), sqrt(2)), accurate to 1e-7.
INLINE float binary_logarithm(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t shifted = bits - 0x3f3504f3u;
    int32_t exponent = (int32_t)shifted >> 23;
    uint32_t fraction_bits = (shifted & 0x007fffffu) + 0x3f3504f3u;
    float fraction;
    memcpy(&fraction, &fraction_bits, sizeof fraction);
    float ratio = (fraction - 1) / (fraction + 1);
    float square = ratio * ratio;
    float series = ratio * (2.88539008f + square * (0.961796694f + square * (0.577078016f + square * 0.412198583f)));
    return (float)exponent + series;
}

// Uses the series of exp for the fraction in [-1/2, 1/2], accurate to 1e-7.
INLINE float binary_power(float exponent) {
    exponent = exponent > -126 ? exponent : -126;
    exponent = exponent < 126 ? exponent : 126;
    int32_t whole = (int32_t)(exponent + 128.5f) - 128;
    float rest = (exponent - (float)whole) * 0.693147181f;
    float series = 1
        + rest
            * (1
               + rest
                   * (0.5f
                      + rest
                          * (0.166666667f + rest * (0.0416666667f + rest * (0.00833333333f + rest * 0.00138888889f)))));
    uint32_t bits = (uint32_t)(whole + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return series * scale;
}

KERNEL void cpixels_apply_power(float exponent, float *restrict planes, size_t stride, size_t count) {
    for (size_t channel = 0; channel < 3; channel++) {
        float *restrict plane = planes + channel * stride;
        for (size_t pixel = 0; pixel < count; pixel++) {
            // Raise smaller numbers to the smallest normal one, because the logarithm requires a normal number.
            float value = plane[pixel] > 1.17549435e-38f ? plane[pixel] : 1.17549435e-38f;
            float power = binary_power(exponent * binary_logarithm(value));
            plane[pixel] = plane[pixel] > 0 ? power : 0;
        }
    }
}

KERNEL void cpixels_apply_tables(
    const uint8_t *restrict tables, const uint8_t *restrict samples, uint8_t *restrict target, size_t channels,
    size_t count) {
    const uint8_t *restrict green = tables + 256;
    const uint8_t *restrict blue = tables + 512;
    if (channels == 1) {
        for (size_t pixel = 0; pixel < count; pixel++) target[pixel] = tables[samples[pixel]];
    } else if (channels == 3) {
        for (size_t pixel = 0; pixel < count; pixel++) {
            target[3 * pixel] = tables[samples[3 * pixel]];
            target[3 * pixel + 1] = green[samples[3 * pixel + 1]];
            target[3 * pixel + 2] = blue[samples[3 * pixel + 2]];
        }
    } else {
        for (size_t pixel = 0; pixel < count; pixel++) {
            target[4 * pixel] = tables[samples[4 * pixel]];
            target[4 * pixel + 1] = green[samples[4 * pixel + 1]];
            target[4 * pixel + 2] = blue[samples[4 * pixel + 2]];
            target[4 * pixel + 3] = samples[4 * pixel + 3];
        }
    }
}
