#include "samples.h"

#include "dispatch.h"

INLINE float limited(float value) {
    value = value > 0 ? value : 0;
    return value < 255 ? value : 255;
}

KERNEL void cpixels_premultiply(const uint8_t *rgba, float *numbers, size_t count) {
    for (size_t pixel = 0; pixel < count; pixel++) {
        float alpha = rgba[4 * pixel + 3];
        float share = alpha / 255;
        numbers[4 * pixel] = rgba[4 * pixel] * share;
        numbers[4 * pixel + 1] = rgba[4 * pixel + 1] * share;
        numbers[4 * pixel + 2] = rgba[4 * pixel + 2] * share;
        numbers[4 * pixel + 3] = alpha;
    }
}

KERNEL void cpixels_unpremultiply(const float *numbers, uint8_t *rgba, size_t count) {
    for (size_t pixel = 0; pixel < count; pixel++) {
        float alpha = limited(numbers[4 * pixel + 3]);
        float scale = alpha >= 0.5f ? 255 / alpha : 0;
        rgba[4 * pixel] = (uint8_t)(limited(numbers[4 * pixel] * scale) + 0.5f);
        rgba[4 * pixel + 1] = (uint8_t)(limited(numbers[4 * pixel + 1] * scale) + 0.5f);
        rgba[4 * pixel + 2] = (uint8_t)(limited(numbers[4 * pixel + 2] * scale) + 0.5f);
        rgba[4 * pixel + 3] = (uint8_t)(alpha + 0.5f);
    }
}

KERNEL void cpixels_to_numbers(const uint8_t *samples, float *numbers, size_t count) {
    for (size_t index = 0; index < count; index++) numbers[index] = samples[index];
}

KERNEL void cpixels_to_samples(const float *numbers, uint8_t *samples, size_t count) {
    for (size_t index = 0; index < count; index++) samples[index] = (uint8_t)(limited(numbers[index]) + 0.5f);
}
