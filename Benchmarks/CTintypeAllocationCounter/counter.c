// SPDX-License-Identifier: Apache-2.0

#include "CTintypeAllocationCounter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

static atomic_bool is_counting;
static atomic_uint_fast64_t allocations;

#ifndef IS_SANITIZED

// glibc exports its own functions under these names, so that replacements can reach them.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static inline void note_allocation(void) {
    if (atomic_load_explicit(&is_counting, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    }
}

void *malloc(size_t size) {
    note_allocation();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note_allocation();
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    note_allocation();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    note_allocation();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note_allocation();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment == 0 || alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) {
        return EINVAL;
    }
    note_allocation();
    void *made = __libc_memalign(alignment, size);
    if (made == NULL) {
        return ENOMEM;
    }
    *block = made;
    return 0;
}

#endif

bool allocation_counter_is_available(void) {
#ifdef IS_SANITIZED
    return false;
#else
    return true;
#endif
}

void allocation_counter_start(void) {
    atomic_store(&allocations, 0);
    atomic_store(&is_counting, true);
}

uint64_t allocation_counter_stop(void) {
    atomic_store(&is_counting, false);
    return atomic_load(&allocations);
}
