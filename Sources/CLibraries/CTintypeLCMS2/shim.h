// SPDX-License-Identifier: Apache-2.0

#ifndef CLCMS2_SHIM_H
#define CLCMS2_SHIM_H

#include <lcms2.h>

// The sample layouts are macros with arguments, which Swift does not import.
static const cmsUInt32Number clcms_type_gray8 = TYPE_GRAY_8;
static const cmsUInt32Number clcms_type_rgb8 = TYPE_RGB_8;
static const cmsUInt32Number clcms_type_rgba8 = TYPE_RGBA_8;
static const cmsUInt32Number clcms_type_cmyk8_inverted = TYPE_CMYK_8_REV;

#endif
