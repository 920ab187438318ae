#include "CShims.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

// What small allocations may need, which nothing can refuse: some thousand of them, and the stack of one more thread.
static const size_t reserve = 24 << 20;

static int is_limited(int resource) {
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

int cshims_has_room(size_t size) {
    if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return 1;
    size_t wanted;
    if (__builtin_add_overflow(size, reserve, &wanted)) return 0;
    // Writable memory: only that counts towards RLIMIT_DATA.
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
    mallopt(M_ARENA_MAX, 2);
}

int cshims_has_descriptors(int count) {
    int taken[32];
    int limit = count < 32 ? count : 32;
    int found = 0;
    int code = 0;
    while (found < limit) {
        int descriptor = eventfd(0, EFD_CLOEXEC);
        if (descriptor < 0) {
            code = errno;
            break;
        }
        taken[found++] = descriptor;
    }
    for (int i = 0; i < found; i++) close(taken[i]);
    errno = code;
    return code != EMFILE && code != ENFILE;
}
