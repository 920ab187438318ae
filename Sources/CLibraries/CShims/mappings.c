#include "CShims.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The handler reads nothing but these words, and calls nothing but the system.

enum { capacity = 1024 };

typedef struct {
    // 0 while the place is free, or being filled.
    _Atomic uintptr_t base;
    _Atomic size_t size;
    _Atomic int is_lost;
    _Atomic int is_taken;
} mapping;

static mapping mappings[capacity];
static _Atomic int used;

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
// Whose turn it is after ours. The first is kept apart: a handler that was installed over ours, and over which
// ours was installed again, may hand on to ours.
static struct sigaction first_action;
static struct sigaction next_action;
static _Atomic int is_installed;
static __thread int depth;

static int replace(uintptr_t base, size_t size) {
    long result = syscall(SYS_mmap, base, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
    return result == (long)base;
}

/// Puts empty memory where the fault was, if that is in one of the mappings.
static int take(uintptr_t address) {
    int count = atomic_load_explicit(&used, memory_order_acquire);
    for (int index = 0; index < count; index++) {
        mapping *one = &mappings[index];
        uintptr_t base = atomic_load_explicit(&one->base, memory_order_acquire);
        size_t size = atomic_load_explicit(&one->size, memory_order_acquire);
        if (base == 0 || address < base || address - base >= size) continue;
        // The place may have been given to another meanwhile.
        if (atomic_load_explicit(&one->base, memory_order_acquire) != base) continue;
        atomic_store_explicit(&one->is_lost, 1, memory_order_release);
        return replace(base, size);
    }
    return 0;
}

static void hand_on(const struct sigaction *action, int number, siginfo_t *info, void *context) {
    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, info, context);
    } else if (action->sa_handler == SIG_IGN && info->si_code <= 0) {
        // Sent by a process, and ignored before.
    } else if (action->sa_handler == SIG_IGN || action->sa_handler == SIG_DFL) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(number, &standard, NULL);
        // A fault comes again by itself, with its address, as soon as this returns.
        if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    } else {
        action->sa_handler(number);
    }
}

static void handle(int number, siginfo_t *info, void *context) {
    int error = errno;
    // A code above zero is the kernel's: `si_addr` is the address of a fault.
    if (info->si_code <= 0 || !take((uintptr_t)info->si_addr)) {
        int is_nested = depth > 0;
        depth++;
        hand_on(is_nested ? &first_action : &next_action, number, info, context);
        depth--;
    }
    errno = error;
}

/// Puts the handler in place, over one that was installed after it as well.
static int install(void) {
    struct sigaction present;
    if (sigaction(SIGBUS, NULL, &present) != 0) return -1;
    if ((present.sa_flags & SA_SIGINFO) && present.sa_sigaction == handle) return 0;
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = handle;
    action.sa_mask = present.sa_mask;
    // A program's own stack for signals is used where there is one.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | (present.sa_flags & SA_NODEFER);
    next_action = present;
    if (!is_installed) first_action = present;
    if (sigaction(SIGBUS, &action, NULL) != 0) return -1;
    is_installed = 1;
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
