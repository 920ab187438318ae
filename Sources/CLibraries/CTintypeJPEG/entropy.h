#ifndef CJPEG_ENTROPY_H
#define CJPEG_ENTROPY_H

#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

/// Has the Huffman codes of an image read by a decoder of our own, which gives the coefficients that the library's
/// gives, sooner.
///
/// Called after `jpeg_start_decompress`. `client_data` is a `cjpeg_report`. The source gives bytes without suspending,
/// up to a marker that ends the scan, which it reaches. False where the library's decoder is left in place: for an
/// image that is not baseline or extended with Huffman coding, in one scan, of 8 bits, and with a library whose
/// insides are not known.
bool cjpeg_entropy_install(j_decompress_ptr library);

#endif
