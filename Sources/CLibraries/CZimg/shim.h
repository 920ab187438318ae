#ifndef CZIMG_SHIM_H
#define CZIMG_SHIM_H

#include <zimg.h>

// The version is a macro with arguments, which Swift does not import.
static const unsigned czimg_api_version = ZIMG_API_VERSION;

// The planes are an array of anonymous structures, which Swift imports as a tuple. A gray
// picture's alpha, were there one, is plane 3.

static inline void czimg_set_plane_const(
    zimg_image_buffer_const *buffer, int plane, const void *data, ptrdiff_t stride, unsigned mask) {
    buffer->plane[plane].data = data;
    buffer->plane[plane].stride = stride;
    buffer->plane[plane].mask = mask;
}

static inline void czimg_set_plane(zimg_image_buffer *buffer, int plane, void *data, ptrdiff_t stride, unsigned mask) {
    buffer->plane[plane].data = data;
    buffer->plane[plane].stride = stride;
    buffer->plane[plane].mask = mask;
}

#endif
