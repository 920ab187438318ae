// SPDX-License-Identifier: Apache-2.0

#ifndef CALLOCATIONCOUNTER_H
#define CALLOCATIONCOUNTER_H

#include <stdbool.h>
#include <stdint.h>

// Counts heap allocations of all threads of the process.
//
// Every executable that links this target uses replacements of the allocation functions. They count a call and pass it
// on to glibc. While counting is off, they cost one load.

/// Whether allocations are counted: not in builds with a sanitizer, which replaces the same
/// functions.
bool allocation_counter_is_available(void);

/// Sets the count to 0 and starts counting.
void allocation_counter_start(void);

/// Stops counting and returns how many allocations there were since the start.
uint64_t allocation_counter_stop(void);

#endif
