// SPDX-License-Identifier: Apache-2.0

#include "compositing.h"

#include "dispatch.h"

INLINE float smaller(float first, float second) {
    return first < second ? first : second;
}

INLINE float larger(float first, float second) {
    return first > second ? first : second;
}

INLINE float limited(float value) {
    return smaller(larger(value, 0), 1);
}

struct color {
    float red, green, blue;
};

INLINE float hard_light(float bottom, float top) {
    float screened = bottom + (2 * top - 1) - bottom * (2 * top - 1);
    return top <= 0.5f ? 2 * bottom * top : screened;
}

INLINE float soft_light(float bottom, float top) {
    float curve = bottom <= 0.25f ? ((16 * bottom - 12) * bottom + 4) * bottom : __builtin_sqrtf(bottom);
    float lightened = bottom + (2 * top - 1) * (curve - bottom);
    return top <= 0.5f ? bottom - (1 - 2 * top) * bottom * (1 - bottom) : lightened;
}

// Section 10.1: separable modes, which blend each colour component by itself.
INLINE float mixed_sample(enum cpixels_mixing mixing, float bottom, float top) {
    switch (mixing) {
    case cpixels_mixing_backdrop: return bottom;
    case cpixels_mixing_multiply: return bottom * top;
    case cpixels_mixing_screen: return bottom + top - bottom * top;
    case cpixels_mixing_overlay: return hard_light(top, bottom);
    case cpixels_mixing_darken: return smaller(bottom, top);
    case cpixels_mixing_lighten: return larger(bottom, top);
    case cpixels_mixing_color_dodge: return bottom <= 0 ? 0 : top >= 1 ? 1 : smaller(1, bottom / (1 - top));
    case cpixels_mixing_color_burn: return bottom >= 1 ? 1 : top <= 0 ? 0 : 1 - smaller(1, (1 - bottom) / top);
    case cpixels_mixing_hard_light: return hard_light(bottom, top);
    case cpixels_mixing_soft_light: return soft_light(bottom, top);
    case cpixels_mixing_difference: return bottom > top ? bottom - top : top - bottom;
    case cpixels_mixing_exclusion: return bottom + top - 2 * bottom * top;
    default: return top;
    }
}

INLINE float luminosity(struct color color) {
    return 0.3f * color.red + 0.59f * color.green + 0.11f * color.blue;
}

INLINE float least(struct color color) {
    return smaller(color.red, smaller(color.green, color.blue));
}

INLINE float most(struct color color) {
    return larger(color.red, larger(color.green, color.blue));
}

INLINE float clipped(float value, float light, float below, float above) {
    value = light + (value - light) * below;
    return light + (value - light) * above;
}

INLINE struct color with_luminosity(struct color color, float light) {
    float step = light - luminosity(color);
    struct color moved = {color.red + step, color.green + step, color.blue + step};
    float low = least(moved), high = most(moved);
    float below = low < 0 ? light / (light - low) : 1;
    float above = high > 1 ? (1 - light) / (high - light) : 1;
    struct color result = {
        clipped(moved.red, light, below, above),
        clipped(moved.green, light, below, above),
        clipped(moved.blue, light, below, above),
    };
    return result;
}

INLINE float saturation(struct color color) {
    return most(color) - least(color);
}

// The specification sorts the three samples. The least becomes 0, the largest becomes the saturation, and the middle
// one is scaled in proportion.
INLINE struct color with_saturation(struct color color, float wanted) {
    float low = least(color), range = most(color) - low;
    float scale = range > 0 ? wanted / range : 0;
    struct color result = {(color.red - low) * scale, (color.green - low) * scale, (color.blue - low) * scale};
    return result;
}

// Section 10.2: non-separable modes, which blend the three components together.
INLINE struct color mixed(enum cpixels_mixing mixing, struct color bottom, struct color top) {
    switch (mixing) {
    case cpixels_mixing_hue: return with_luminosity(with_saturation(top, saturation(bottom)), luminosity(bottom));
    case cpixels_mixing_saturation:
        return with_luminosity(with_saturation(bottom, saturation(top)), luminosity(bottom));
    case cpixels_mixing_color: return with_luminosity(top, luminosity(bottom));
    case cpixels_mixing_luminosity: return with_luminosity(bottom, luminosity(top));
    default: break;
    }
    struct color result = {
        mixed_sample(mixing, bottom.red, top.red),
        mixed_sample(mixing, bottom.green, top.green),
        mixed_sample(mixing, bottom.blue, top.blue),
    };
    return result;
}

// Section 5: adds the blended colour and the two unblended colours, by the parts of the pixel that they cover.
INLINE void blend(
    enum cpixels_mixing mixing, float keeps_source, float keeps_backdrop, float opacity, const float *restrict source,
    float *restrict backdrop, size_t stride, size_t count) {
    float *restrict red = backdrop;
    float *restrict green = backdrop + stride;
    float *restrict blue = backdrop + 2 * stride;
    float *restrict alpha = backdrop + 3 * stride;
    for (size_t pixel = 0; pixel < count; pixel++) {
        struct color top = {source[pixel], source[stride + pixel], source[2 * stride + pixel]};
        struct color bottom = {limited(red[pixel]), limited(green[pixel]), limited(blue[pixel])};
        float top_alpha = source[3 * stride + pixel] * opacity, bottom_alpha = alpha[pixel];
        float both = top_alpha * bottom_alpha;
        float top_alone = keeps_source * (top_alpha - both);
        float bottom_alone = keeps_backdrop * (bottom_alpha - both);
        float sum = both + top_alone + bottom_alone;
        float scale = sum > 0 ? 1 / sum : 0;
        struct color middle = mixed(mixing, bottom, top);
        red[pixel] = (both * middle.red + top_alone * top.red + bottom_alone * bottom.red) * scale;
        green[pixel] = (both * middle.green + top_alone * top.green + bottom_alone * bottom.green) * scale;
        blue[pixel] = (both * middle.blue + top_alone * top.blue + bottom_alone * bottom.blue) * scale;
        alpha[pixel] = sum;
    }
}

KERNEL void cpixels_blend(
    enum cpixels_mixing mixing, float keeps_source, float keeps_backdrop, float opacity, const float *restrict source,
    float *restrict backdrop, size_t stride, size_t count) {
#define BLEND(name)                                                                                           \
    case cpixels_mixing_##name:                                                                               \
        blend(cpixels_mixing_##name, keeps_source, keeps_backdrop, opacity, source, backdrop, stride, count); \
        break;
    switch (mixing) {
        BLEND(source)
        BLEND(backdrop)
        BLEND(multiply)
        BLEND(screen)
        BLEND(overlay)
        BLEND(darken)
        BLEND(lighten)
        BLEND(color_dodge)
        BLEND(color_burn)
        BLEND(hard_light)
        BLEND(soft_light)
        BLEND(difference)
        BLEND(exclusion)
        BLEND(hue)
        BLEND(saturation)
        BLEND(color)
        BLEND(luminosity)
    }
#undef BLEND
}
