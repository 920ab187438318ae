// SPDX-License-Identifier: Apache-2.0

#include "CTintypeDescriptorLimit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

static atomic_bool spares_dispatch;

void descriptor_limit_spare_dispatch(bool is_spared) {
    atomic_store(&spares_dispatch, is_spared);
}

#ifndef IS_SANITIZED

static int open_file(const char *path, int flags, mode_t mode) {
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static bool is_thread_of_dispatch(const char *path) {
    int thread = 0;
    int length = 0;
    return sscanf(path, "/proc/%d/stat%n", &thread, &length) == 1 && length > 0 && path[length] == '\0';
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = has_mode ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    int descriptor = open_file(path, flags, mode);
    if (descriptor >= 0 || errno != EMFILE) return descriptor;
    if (!atomic_load(&spares_dispatch) || !is_thread_of_dispatch(path)) return descriptor;
    struct rlimit old;
    getrlimit(RLIMIT_NOFILE, &old);
    struct rlimit high = {.rlim_cur = old.rlim_max, .rlim_max = old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &high);
    descriptor = open_file(path, flags, mode);
    int code = errno;
    setrlimit(RLIMIT_NOFILE, &old);
    errno = code;
    return descriptor;
}

#endif
