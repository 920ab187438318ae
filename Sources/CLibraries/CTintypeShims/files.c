// SPDX-License-Identifier: Apache-2.0

#include "CTintypeShims.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int cshims_open_cached(int folder, const char *path) {
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
        .resolve = RESOLVE_CACHED,
    };
    return (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
}

int cshims_open_beneath(int folder, const char *path, int flags) {
    struct open_how how = {
        .flags = (unsigned)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int descriptor = -1;
    // EAGAIN: the kernel could not rule out that a folder was moved meanwhile.
    for (int tries = 0; tries < 8; tries += 1) {
        descriptor = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
        if (descriptor >= 0 || (errno != EAGAIN && errno != EINTR)) break;
    }
    return descriptor;
}

long cshims_read_cached(int descriptor, void *buffer, unsigned long count) {
    struct iovec part = {.iov_base = buffer, .iov_len = count};
    return preadv2(descriptor, &part, 1, 0, RWF_NOWAIT);
}

static int set_lock(int descriptor, struct flock *lock) {
    int result;
    do {
        result = fcntl(descriptor, F_OFD_SETLK, lock);
    } while (result < 0 && errno == EINTR);
    return result;
}

int cshims_lock_byte(int descriptor, long offset, int kind) {
    static const short types[] = {F_UNLCK, F_WRLCK};
    struct flock lock = {.l_type = types[kind], .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    return set_lock(descriptor, &lock);
}

int cshims_unlock_all(int descriptor) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    return set_lock(descriptor, &lock);
}

long cshims_file_system_type(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 ? (long)status.f_type : -1;
}

int cshims_own_blocks(int descriptor, long size) {
    // FALLOC_FL_UNSHARE_RANGE. Only file systems that share blocks between files support it.
    int result;
    do {
        result = fallocate(descriptor, 0x40, 0, size);
    } while (result < 0 && errno == EINTR);
    return result < 0 && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS ? -1 : 0;
}

int cshims_rename_exclusively(int fromFolder, const char *from, int toFolder, const char *to) {
    return (int)syscall(SYS_renameat2, fromFolder, from, toFolder, to, 1 /* RENAME_NOREPLACE */);
}
