#ifndef CPIXELKERNELS_DISPATCH_H
#define CPIXELKERNELS_DISPATCH_H

// All processors make the same sums: multiplications and additions stay apart.
#pragma STDC FP_CONTRACT OFF

// KERNEL compiles a function once for every x86-64 and once with AVX2; the loader takes the one that the processor has.
//
// Without FMA and without reordered sums, so that all of them give the same pixels. The loops are written so that
// compilers vectorise them; what a kernel calls must be inlined (INLINE), or it stays as it is for every processor.
//
// Not under the sanitizers: what chooses is called by the loader before their runtimes have begun, and they have
// instrumented it.
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
