// SPDX-License-Identifier: Apache-2.0

#include "CTintypeShims.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

// A reserve for allocations that cannot be refused: thousands of small ones, and the stack of one more thread.
static const size_t reserve = 24 << 20;

// A reserve of descriptors that cannot be refused. The runtime sometimes opens a file of /proc to see which of its
// threads are running. It ends the process if that fails.
static const int descriptor_reserve = 4;

static int is_limited(int resource) {
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

int cshims_has_room(size_t size) {
    if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return 1;
    size_t wanted;
    if (__builtin_add_overflow(size, reserve, &wanted)) return 0;
    // The probe is writable, because only writable memory counts towards RLIMIT_DATA.
    void *probe = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) return 0;
    munmap(probe, wanted);
    return 1;
}

int cshims_has_memory_limit(void) {
    return is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA);
}

size_t cshims_stack_size(void) {
    pthread_attr_t attributes;
    size_t size = 8 << 20;
    if (pthread_getattr_default_np(&attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &size);
        pthread_attr_destroy(&attributes);
    }
    return size;
}

void cshims_spare_address_space(void) {
    pthread_attr_t attributes;
    if (pthread_getattr_default_np(&attributes) == 0) {
        if (pthread_attr_setstacksize(&attributes, 1 << 20) == 0) pthread_setattr_default_np(&attributes);
        pthread_attr_destroy(&attributes);
    }
    mallopt(M_ARENA_MAX, 1);
}

int cshims_has_descriptors(int count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
    int wanted = count + descriptor_reserve;
    int next = limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur : INT_MAX;
    // Count from the top, because the system assigns the lowest free number first. Do not open descriptors to count
    // them: a probe with the last ones could make the runtime fail.
    while (wanted > 0 && next > 0) wanted -= fcntl(--next, F_GETFD) < 0;
    if (wanted > 0) {
        errno = EMFILE;
        return 0;
    }
    int probe = eventfd(0, EFD_CLOEXEC);
    if (probe < 0) return errno != EMFILE && errno != ENFILE;
    close(probe);
    return 1;
}
