#ifndef CSHIMS_H
#define CSHIMS_H

// Linux calls that the Glibc overlay does not import.

/// Returns a blocking, close-on-exec eventfd, or -1 with errno set.
int cshims_eventfd(void);

/// Names the calling thread. Linux keeps the first 15 bytes.
void cshims_set_thread_name(const char *_Nonnull name);

/// The number of the calling thread: 1 for the first that asks, then 2, and so on.
unsigned cshims_thread_number(void);

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <time.h>
#endif

/// Returns a number that grows with time, at an unknown rate, the same for all processors.
///
/// The processor's own counter, without a call: some nanoseconds where a clock takes tens.
static inline unsigned long long cshims_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    unsigned long long ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * 1000000000ULL + (unsigned long long)time.tv_nsec;
#endif
}

#endif
