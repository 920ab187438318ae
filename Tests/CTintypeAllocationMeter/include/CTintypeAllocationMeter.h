#ifndef CALLOCATIONMETER_H
#define CALLOCATIONMETER_H

#include <stdbool.h>
#include <stdint.h>

// Measures how many bytes of the heap one thread holds at once.
//
// The functions that allocate and free are replaced in whatever executable links this target; the replacements
// count and hand on to glibc. On threads that measure nothing they cost one load.

/// Whether allocations are measured: not in builds with a sanitizer, which replaces the same functions.
bool allocation_meter_is_available(void);

/// Begins to measure what the calling thread allocates and frees from now on.
void allocation_meter_start(void);

/// How often the calling thread has allocated since the measurement began; a block that is moved counts again.
int64_t allocation_meter_count(void);

/// Stops measuring; the most bytes that the calling thread had allocated at once, less those it had freed.
int64_t allocation_meter_stop(void);

#endif
