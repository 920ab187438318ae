// SPDX-License-Identifier: Apache-2.0

#ifndef CJPEG_ENTROPY_H
#define CJPEG_ENTROPY_H

#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

/// Installs a faster Huffman decoder of this package for an image. It produces the same coefficients as the library's.
///
/// Call it after `jpeg_start_decompress`. `client_data` must be a `cjpeg_report`. The source must supply bytes without
/// suspending, up to a marker that ends the scan. Returns false and leaves the library's decoder in place if the image
/// is not baseline or extended with Huffman coding, 8 bits and one scan, or if the library's internal layout is
/// unknown.
bool cjpeg_entropy_install(j_decompress_ptr library);

#endif
