#ifndef CPNGFILTERS_H
#define CPNGFILTERS_H

#include <stddef.h>
#include <stdint.h>

// The filters of W3C PNG, third edition, section 9, in portable vector code: each pixel of
// three of them needs the one before it, which no compiler vectorises by itself.

/// Undoes a filter on one scanline of `count` bytes.
///
/// `prior` is the scanline above, zeros for the first. `line` may lie anywhere that does not
/// overlap `filtered`, or begin before it: what was read is never needed again.
/// Returns 0 for a filter that is not one of the five.
int cpngfilters_undo(
    int filter, uint8_t *_Nonnull line, const uint8_t *_Nonnull filtered, const uint8_t *_Nonnull prior, size_t count,
    size_t bytes_per_pixel);

/// Writes a scanline as filtered by one of the five, the filter's number first.
///
/// Returns the sum of the filtered bytes' distances from zero: the smaller, the better it
/// compresses, as a rule (section 12.7).
uint64_t cpngfilters_apply(
    int filter, uint8_t *_Nonnull filtered, const uint8_t *_Nonnull line, const uint8_t *_Nonnull prior, size_t count,
    size_t bytes_per_pixel);

#endif
