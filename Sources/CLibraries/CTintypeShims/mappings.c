// SPDX-License-Identifier: Apache-2.0

#include "CTintypeShims.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The handler reads only these words and makes only system calls, also under the thread sanitizer. The sanitizer's
// atomic operations hold an internal lock at the fault, and the handler would wait for that lock.
#if __has_attribute(disable_sanitizer_instrumentation)
#define IN_HANDLER __attribute__((disable_sanitizer_instrumentation))
#else
#define IN_HANDLER
#endif

enum { capacity = 1024 };

typedef struct {
    // 0 while the slot is free or being filled.
    _Atomic uintptr_t base;
    _Atomic size_t size;
    _Atomic int is_lost;
    _Atomic int is_taken;
} mapping;

static mapping mappings[capacity];
static _Atomic int used;

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
// The handlers that follow ours. The first one has its own variable: if another handler replaced ours and ours was then
// installed over it, that handler may pass signals back to ours. These structures never change and are never freed,
// because another thread may be using one.
static struct sigaction *_Atomic first_action;
static struct sigaction *_Atomic next_action;

// The signal that this thread is passing on: the address of the kernel's information, and the handler's frame.
//
// If the next handler calls ours again, the information is the same and the frame is further down, because stacks grow
// down on all Linux platforms. If a handler leaves by `siglongjmp`, these words are stale. This does no harm: a
// later signal has its information at another address, or at the same address and then the same frame.
static __thread const siginfo_t *handed_info;
static __thread uintptr_t handed_frame;

IN_HANDLER static int replace(uintptr_t base, size_t size) {
    long result = syscall(
        SYS_mmap, base, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
    return result == (long)base;
}

/// Replaces the mapping with empty memory if the fault is in a registered one.
IN_HANDLER static int take(uintptr_t address) {
    int count = atomic_load_explicit(&used, memory_order_acquire);
    for (int index = 0; index < count; index++) {
        mapping *one = &mappings[index];
        uintptr_t base = atomic_load_explicit(&one->base, memory_order_acquire);
        size_t size = atomic_load_explicit(&one->size, memory_order_acquire);
        if (base == 0 || address < base || address - base >= size) continue;
        // Another mapping may have reused the slot in the meantime.
        if (atomic_load_explicit(&one->base, memory_order_acquire) != base) continue;
        atomic_store_explicit(&one->is_lost, 1, memory_order_release);
        return replace(base, size);
    }
    return 0;
}

IN_HANDLER static void hand_on(const struct sigaction *action, int number, siginfo_t *info, void *context) {
    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, info, context);
    } else if (action->sa_handler == SIG_IGN && info->si_code <= 0) {
        // A process sent the signal, and it was ignored before.
    } else if (action->sa_handler == SIG_IGN || action->sa_handler == SIG_DFL) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(number, &standard, NULL);
        // A fault repeats, with its address, as soon as this returns.
        if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    } else {
        action->sa_handler(number);
    }
}

IN_HANDLER static void handle(int number, siginfo_t *info, void *context) {
    int error = errno;
    // Codes above zero come from the kernel, and `si_addr` is then the address of the fault.
    if (info->si_code <= 0 || !take((uintptr_t)info->si_addr)) {
        const siginfo_t *outer_info = handed_info;
        uintptr_t outer_frame = handed_frame;
        uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
        int is_nested = info == outer_info && frame < outer_frame;
        handed_info = info;
        handed_frame = frame;
        hand_on(
            atomic_load_explicit(is_nested ? &first_action : &next_action, memory_order_acquire), number, info,
            context);
        handed_info = outer_info;
        handed_frame = outer_frame;
    }
    errno = error;
}

static int is_ours(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == handle;
}

/// Makes `action` the next handler after ours.
static int precede(const struct sigaction *action) {
    struct sigaction *known = atomic_load_explicit(&next_action, memory_order_acquire);
    // A host that repeatedly installs the same handler uses no additional memory.
    if (known && known->sa_flags == action->sa_flags && known->sa_sigaction == action->sa_sigaction) return 0;
    struct sigaction *copy = malloc(sizeof(*copy));
    if (!copy) return -1;
    *copy = *action;
    if (!known) atomic_store_explicit(&first_action, copy, memory_order_release);
    atomic_store_explicit(&next_action, copy, memory_order_release);
    return 0;
}

/// Installs the handler, also over a handler that was installed after it.
static int install(void) {
    struct sigaction present;
    if (sigaction(SIGBUS, NULL, &present) != 0) return -1;
    // Another thread may install a handler between the check and the call. In that case ours has replaced that handler.
    while (!is_ours(&present)) {
        struct sigaction action;
        memset(&action, 0, sizeof(action));
        action.sa_sigaction = handle;
        action.sa_mask = present.sa_mask;
        // Use the program's own signal stack if it has one.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | (present.sa_flags & SA_NODEFER);
        if (precede(&present) != 0) return -1;
        struct sigaction replaced;
        if (sigaction(SIGBUS, &action, &replaced) != 0) return -1;
        if (replaced.sa_flags == present.sa_flags && replaced.sa_sigaction == present.sa_sigaction) return 0;
        present = replaced;
    }
    return 0;
}

int cshims_guard_mapping(void *base, size_t size) {
    pthread_mutex_lock(&installing);
    int result = install();
    int index = 0;
    if (result == 0) {
        while (index < capacity && mappings[index].is_taken) index++;
        result = index < capacity ? index : -1;
        if (index == capacity) errno = ENOMEM;
    }
    if (result >= 0) {
        mapping *one = &mappings[index];
        one->is_taken = 1;
        one->is_lost = 0;
        atomic_store_explicit(&one->size, size, memory_order_release);
        atomic_store_explicit(&one->base, (uintptr_t)base, memory_order_release);
        if (index >= used) atomic_store_explicit(&used, index + 1, memory_order_release);
    }
    pthread_mutex_unlock(&installing);
    return result;
}

void cshims_release_mapping(int index) {
    atomic_store_explicit(&mappings[index].base, 0, memory_order_release);
    atomic_store_explicit(&mappings[index].is_taken, 0, memory_order_release);
}

int cshims_is_mapping_lost(int index) {
    return atomic_load_explicit(&mappings[index].is_lost, memory_order_acquire);
}
