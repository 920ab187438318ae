// SPDX-License-Identifier: Apache-2.0

#ifndef CALLOCATIONMETER_H
#define CALLOCATIONMETER_H

#include <stdbool.h>
#include <stdint.h>

// Measures how many bytes of the heap one thread holds at once.
//
// The target replaces the functions that allocate and free in every executable that links it. The replacements count
// and call glibc. On threads that do not measure, they cost one load.

/// Whether allocations can be measured, which is false with a sanitizer because it replaces the same functions.
bool allocation_meter_is_available(void);

/// Begins to measure the allocations of the calling thread.
void allocation_meter_start(void);

/// Returns the number of allocations of the calling thread since the beginning, counting a moved block again.
int64_t allocation_meter_count(void);

/// Stops measuring, and returns the most bytes that the calling thread had allocated at once, less the freed ones.
int64_t allocation_meter_stop(void);

#endif
