// SPDX-License-Identifier: Apache-2.0

#ifndef CPIXELKERNELS_COMPOSITING_H
#define CPIXELKERNELS_COMPOSITING_H

#include <stddef.h>
#include <stdint.h>

// Blends colours by W3C Compositing and Blending Level 1.

/// The blend mode, for the part of a pixel that both the backdrop and the source cover (section 5.2 and later).
enum cpixels_mixing {
    cpixels_mixing_source,
    cpixels_mixing_backdrop,
    cpixels_mixing_multiply,
    cpixels_mixing_screen,
    cpixels_mixing_overlay,
    cpixels_mixing_darken,
    cpixels_mixing_lighten,
    cpixels_mixing_color_dodge,
    cpixels_mixing_color_burn,
    cpixels_mixing_hard_light,
    cpixels_mixing_soft_light,
    cpixels_mixing_difference,
    cpixels_mixing_exclusion,
    cpixels_mixing_hue,
    cpixels_mixing_saturation,
    cpixels_mixing_color,
    cpixels_mixing_luminosity,
};

/// Draws planes over others, in place. `adjustments.h` describes the planes.
///
/// `keeps_source` and `keeps_backdrop` (0 or 1) say whether each is visible in the part that it alone covers. The
/// source's alpha is multiplied by `opacity`.
void cpixels_blend(
    enum cpixels_mixing mixing, float keeps_source, float keeps_backdrop, float opacity, const float *_Nonnull source,
    float *_Nonnull backdrop, size_t stride, size_t count);

#endif
