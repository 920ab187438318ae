#ifndef CPIXELKERNELS_DISPATCH_H
#define CPIXELKERNELS_DISPATCH_H

// KERNEL compiles a function once for every x86-64 and once with AVX2; the loader takes the one that the processor has.
//
// Without FMA and without reordered sums, so that all of them give the same pixels. The loops are written so that
// compilers vectorise them; what a kernel calls must be inlined (INLINE), or it stays as it is for every processor.
#if defined(__x86_64__) && defined(__linux__)
#define KERNEL __attribute__((target_clones("avx2", "default")))
#else
#define KERNEL
#endif

#define INLINE static inline __attribute__((always_inline))

#endif
