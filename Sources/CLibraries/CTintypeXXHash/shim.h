// SPDX-License-Identifier: Apache-2.0

#ifndef CXXHASH_SHIM_H
#define CXXHASH_SHIM_H

#include <xxhash.h>

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#endif

/// Computes XXH3 with the widest vector code that the processor supports. The plain build uses only SSE2, at a seventh
/// of the speed.
static inline XXH64_hash_t cxxhash_64bits(const void *input, size_t count) {
#if defined(__x86_64__)
    return XXH3_64bits_dispatch(input, count);
#else
    return XXH3_64bits(input, count);
#endif
}

#endif
