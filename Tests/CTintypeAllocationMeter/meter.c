// SPDX-License-Identifier: Apache-2.0

#include "CTintypeAllocationMeter.h"

#include <errno.h>
#include <malloc.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

struct meter {
    bool is_measuring;
    int64_t held;
    int64_t most;
    int64_t count;
};

// The variable belongs to the executable itself, so that accessing it allocates nothing.
static __thread struct meter meter __attribute__((tls_model("initial-exec")));

#ifndef IS_SANITIZED

// glibc exports its own functions under these names for replacements.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static inline void *note_allocation(void *block) {
    if (meter.is_measuring && block != NULL) {
        meter.count += 1;
        meter.held += (int64_t)malloc_usable_size(block);
        if (meter.held > meter.most) meter.most = meter.held;
    }
    return block;
}

void *malloc(size_t size) {
    return note_allocation(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return note_allocation(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
    int64_t old = meter.is_measuring && block != NULL ? (int64_t)malloc_usable_size(block) : 0;
    void *made = __libc_realloc(block, size);
    if (meter.is_measuring && (made != NULL || size == 0)) {
        // The system moves large blocks, so that the old and the new block never exist at the same time.
        meter.held -= old;
        note_allocation(made);
    }
    return made;
}

void *memalign(size_t alignment, size_t size) {
    return note_allocation(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    return note_allocation(__libc_memalign(alignment, size));
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment == 0 || alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *made = note_allocation(__libc_memalign(alignment, size));
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}

void free(void *block) {
    if (meter.is_measuring && block != NULL) meter.held -= (int64_t)malloc_usable_size(block);
    __libc_free(block);
}

#endif

bool allocation_meter_is_available(void) {
#ifdef IS_SANITIZED
    return false;
#else
    return true;
#endif
}

void allocation_meter_start(void) {
    meter.held = 0;
    meter.most = 0;
    meter.count = 0;
    meter.is_measuring = true;
}

int64_t allocation_meter_count(void) {
    return meter.count;
}

int64_t allocation_meter_stop(void) {
    meter.is_measuring = false;
    return meter.most;
}
