// SPDX-License-Identifier: Apache-2.0

#include "CTintypeCodecLoops.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <turbojpeg.h>
#include <webp/encode.h>

struct errors {
    struct jpeg_error_mgr manager;
    jmp_buf exit;
};

static void leave(j_common_ptr info) {
    longjmp(((struct errors *)info->err)->exit, 1);
}

int codec_loop_decode_jpeg(
    const uint8_t *bytes, size_t count, int divisor, uint8_t *pixels, size_t capacity, int *width, int *height) {
    struct jpeg_decompress_struct info;
    struct errors errors;
    info.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = leave;
    jpeg_create_decompress(&info);
    if (setjmp(errors.exit)) {
        jpeg_destroy_decompress(&info);
        return -1;
    }
    jpeg_mem_src(&info, bytes, count);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    info.scale_denom = (unsigned)divisor;
    jpeg_start_decompress(&info);
    size_t stride = (size_t)info.output_width * 3;
    if (stride * info.output_height > capacity) {
        jpeg_destroy_decompress(&info);
        return -1;
    }
    while (info.output_scanline < info.output_height) {
        JSAMPROW rows[16];
        JDIMENSION left = info.output_height - info.output_scanline;
        JDIMENSION wanted = left < 16 ? left : 16;
        for (JDIMENSION row = 0; row < wanted; row++) {
            rows[row] = pixels + stride * (info.output_scanline + row);
        }
        jpeg_read_scanlines(&info, rows, wanted);
    }
    *width = (int)info.output_width;
    *height = (int)info.output_height;
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return 0;
}

size_t codec_loop_transform_jpeg(const uint8_t *bytes, size_t count, int turns, int is_progressive) {
    tjhandle handle = tjInitTransform();
    if (handle == NULL) return 0;
    tjtransform transform = {
        .op = turns ? TJXOP_ROT90 : TJXOP_NONE,
        .options = TJXOPT_TRIM | (is_progressive ? TJXOPT_PROGRESSIVE : 0),
    };
    unsigned char *result = NULL;
    unsigned long size = 0;
    int status = tjTransform(handle, bytes, (unsigned long)count, 1, &result, &size, &transform, 0);
    tjFree(result);
    tjDestroy(handle);
    return status == 0 ? (size_t)size : 0;
}

size_t codec_loop_encode_jpeg(const uint8_t *pixels, int width, int height, size_t stride, int quality) {
    struct jpeg_compress_struct info;
    struct errors errors;
    // Both are set by the library between setjmp and a jump.
    unsigned char *volatile result = NULL;
    unsigned char *out = NULL;
    unsigned long count = 0;
    info.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = leave;
    jpeg_create_compress(&info);
    if (setjmp(errors.exit)) {
        jpeg_destroy_compress(&info);
        free(result);
        return 0;
    }
    jpeg_mem_dest(&info, &out, &count);
    info.image_width = (JDIMENSION)width;
    info.image_height = (JDIMENSION)height;
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    // 4:2:0 is the default.
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = (JSAMPROW)(pixels + stride * info.next_scanline);
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    result = out;
    jpeg_destroy_compress(&info);
    free(result);
    return count;
}

size_t codec_loop_encode_webp(const uint8_t *pixels, int width, int height, size_t stride, int quality) {
    uint8_t *result = NULL;
    size_t count = WebPEncodeRGB(pixels, width, height, (int)stride, (float)quality, &result);
    WebPFree(result);
    return count;
}
