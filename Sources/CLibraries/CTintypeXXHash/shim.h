#ifndef CXXHASH_SHIM_H
#define CXXHASH_SHIM_H

#include <xxhash.h>

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#endif

/// XXH3 with the widest vector code of this processor; the plain build uses SSE2 only, at a seventh of the speed.
static inline XXH64_hash_t cxxhash_64bits(const void *input, size_t count) {
#if defined(__x86_64__)
    return XXH3_64bits_dispatch(input, count);
#else
    return XXH3_64bits(input, count);
#endif
}

#endif
