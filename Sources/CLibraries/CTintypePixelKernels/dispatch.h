// SPDX-License-Identifier: Apache-2.0

#ifndef CPIXELKERNELS_DISPATCH_H
#define CPIXELKERNELS_DISPATCH_H

// Keep multiplications and additions separate, so that all processors compute the same sums.
#pragma STDC FP_CONTRACT OFF

// KERNEL compiles a function once for every x86-64 and once with AVX2. The loader chooses the version for the
// processor.
//
// FMA and reordered sums are off, so that both versions give the same pixels. Loops are written so that compilers
// vectorise them. A function that a kernel calls must be inlined (INLINE), or it is not compiled for AVX2.
//
// The sanitizers disable this: the loader calls the resolver function before their runtimes have started, and the
// resolver is instrumented.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define IS_SANITIZED
#endif
#endif
#if defined(__x86_64__) && defined(__linux__) && !defined(IS_SANITIZED)
#define CLONES(...) __attribute__((target_clones(__VA_ARGS__)))
#else
#define CLONES(...)
#endif
#define KERNEL CLONES("avx2", "default")

#define INLINE static inline __attribute__((always_inline))

#endif
