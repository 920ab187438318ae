// SPDX-License-Identifier: Apache-2.0

#ifndef CPNGFILTERS_H
#define CPNGFILTERS_H

#include <stddef.h>
#include <stdint.h>

// The filters of W3C PNG, third edition, section 9, in portable vector code. In three of them each pixel depends on the
// previous one, so compilers cannot vectorise them.

/// Undoes a filter on one scanline of `count` bytes.
///
/// `prior` is the scanline above, or zeros for the first scanline. `line` must either not overlap `filtered` or begin
/// before it, because the function reads each byte only once. Returns 0 if the filter is not one of the five.
int cpngfilters_undo(
    int filter, uint8_t *_Nonnull line, const uint8_t *_Nonnull filtered, const uint8_t *_Nonnull prior, size_t count,
    size_t bytes_per_pixel);

/// Writes a filtered scanline, with the number of the filter first.
///
/// Returns the sum of the filtered bytes' distances from zero. A smaller sum usually compresses better (section 12.7).
uint64_t cpngfilters_apply(
    int filter, uint8_t *_Nonnull filtered, const uint8_t *_Nonnull line, const uint8_t *_Nonnull prior, size_t count,
    size_t bytes_per_pixel);

#endif
