#ifndef CSHIMS_H
#define CSHIMS_H

#include <stddef.h>

// Linux calls that the Glibc overlay does not import.

/// The bytes that were read from a TCP connection since it was made, or -1 if that is not known.
long long cshims_bytes_read(int socket);

/// Returns a blocking, close-on-exec eventfd, or -1 with errno set.
int cshims_eventfd(void);

/// Names the calling thread. Linux keeps the first 15 bytes.
void cshims_set_thread_name(const char *_Nonnull name);

/// Asks for short slices of processor time for the calling thread, so that it waits less for its turn when it wakes up
/// (EEVDF, from Linux 6.12 on; older kernels change nothing). Its share stays what it is.
void cshims_prefer_short_slices(long nanoseconds);

/// Opens a file for reading if that takes no waiting: `EAGAIN` if the disk has to be asked.
///
/// Follows no link. Returns the descriptor, or -1 with errno set (`ENOSYS` before Linux 5.12).
int cshims_open_cached(int folder, const char *_Nonnull path);

/// Reads the start of a file that is in memory: `EAGAIN` or a short count if the disk has to be asked.
long cshims_read_cached(int descriptor, void *_Nonnull buffer, unsigned long count);

enum {
    CSHIMS_LOCK_NONE = 0,
    CSHIMS_LOCK_TRY = 1,
};

/// Locks or unlocks one byte of an open file, against every other open file, in any process; -1 with errno set.
///
/// The lock ends with the last descriptor of the open file, copies in forked processes included. Never waits.
int cshims_lock_byte(int descriptor, long offset, int kind);

/// Gives back all locks of an open file, for all processes with a descriptor of it.
int cshims_unlock_all(int descriptor);

/// The magic number of the file system of an open file, or -1.
long cshims_file_system_type(int descriptor);

/// Gives each block of the first `size` bytes of a file to this file alone, and fills holes, so that a write needs no
/// more room on the disk. Returns 0, also if the file system shares no blocks, or -1 with errno set.
int cshims_own_blocks(int descriptor, long size);

/// Renames unless there is something at `to`: `EEXIST`. `EINVAL` if the file system can't.
int cshims_rename_exclusively(int fromFolder, const char *_Nonnull from, int toFolder, const char *_Nonnull to);

/// What a descriptor is waited for, or ready for.
enum {
    CSHIMS_READABLE = 1,
    CSHIMS_WRITABLE = 2,
    /// Only reported, never waited for: the peer left, or the descriptor failed.
    CSHIMS_BROKEN = 4,
    /// Only waited for: each time that it becomes ready is reported once, whether or not it is read.
    CSHIMS_ONCE_EACH = 8,
};

/// A descriptor that is ready.
typedef struct {
    int descriptor;
    int events;
} cshims_event;

/// Returns a close-on-exec epoll descriptor, or -1 with errno set.
int cshims_epoll_create(void);

/// Adds a descriptor to an epoll set, or changes what it is waited for; 0 takes it out.
/// Returns 0, or -1 with errno set.
int cshims_epoll_set(int epoll, int descriptor, int events);

/// Waits at most so many milliseconds (-1: for ever) and returns how many descriptors are ready.
/// Returns 0 when a signal came in between, and -1 with errno set on a failure.
int cshims_epoll_wait(int epoll, cshims_event *_Nonnull events, int capacity, int milliseconds);
/// The number of the calling thread: 1 for the first that asks, then 2, and so on.
unsigned cshims_thread_number(void);

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <time.h>
#endif

/// Returns a number that grows with time, at an unknown rate, the same for all processors.
///
/// The processor's own counter, without a call: some nanoseconds where a clock takes tens.
static inline unsigned long long cshims_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    unsigned long long ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * 1000000000ULL + (unsigned long long)time.tv_nsec;
#endif
}

/// Returns `size` bytes of untouched memory that starts at a multiple of `alignment`, or NULL.
///
/// Nothing is set aside for it before it is touched. Unmap it with `munmap`.
void *_Nullable cshims_map(size_t size, size_t alignment);

/// Moves `size` mapped bytes to where other memory is mapped, without a copy. Returns 0, or -1 with errno set.
int cshims_move_mapped(void *_Nonnull from, void *_Nonnull to, size_t size);

/// Keeps the process alive when memory that is mapped from a file, and that a number of this call stands for, can't
/// be had: the file was made shorter, or its disk is full or broken.
///
/// Installs a handler of `SIGBUS` that looks at the address: in one of these mappings, empty memory of the process's
/// own takes the place of the whole of it. Anything else is handed on to whatever handled the signal before. Returns
/// the number of the mapping, or -1 with errno set.
int cshims_guard_mapping(void *_Nonnull base, size_t size);

/// Gives a number back; before the memory is unmapped.
void cshims_release_mapping(int index);

/// Whether the mapping is no longer the file's.
int cshims_is_mapping_lost(int index);

/// Whether `size` more bytes are to be had, and some more beyond them for all that can't be refused.
///
/// Only a limit of the process (`RLIMIT_AS`, `RLIMIT_DATA`) is looked at: without one it is always true, and costs
/// two calls of the system. Swift ends the process where a small allocation fails, so that large ones must leave
/// something.
int cshims_has_room(size_t size);

/// Whether the process has a limit of memory of its own (`RLIMIT_AS`, `RLIMIT_DATA`).
int cshims_has_memory_limit(void);

/// The bytes of the stack that a new thread gets.
size_t cshims_stack_size(void);

/// Makes do with little address space from now on, at the price of some speed: stacks of 1 MiB for threads to come,
/// where 8 MiB are usual and hardly ever used, and two arenas of the allocator, each of which reserves 64 MiB.
///
/// For a program's own main function: it changes the whole process.
void cshims_spare_address_space(void);

/// Whether the process can open `count` more files, and some more beyond them for all that can't be refused; if not,
/// errno is EMFILE or ENFILE.
int cshims_has_descriptors(int count);

/// Takes a block of at least `size` bytes, and at most a quarter more, that was kept; NULL where there is none.
/// `actual` is its size.
///
/// Its bytes are zero, or what was in them.
void *_Nullable cshims_take_block(size_t size, size_t *_Nonnull actual);

/// Keeps a block of `malloc`'s that is not used any more, for `cshims_take_block`; 0 where it is to be freed instead.
///
/// Four blocks of 64 MiB together are kept at most, the newest ones. Their pages are the system's where it runs short
/// (MADV_FREE): taking one that it has left alone costs no new ones. Nothing is kept in a process with a limit of
/// memory of its own.
int cshims_keep_block(void *_Nonnull start, size_t size);

/// Frees the blocks that are kept.
void cshims_drop_blocks(void);

/// While more pauses were begun (1) than ended (-1), no block is kept or taken: for measurements.
void cshims_pause_blocks(int change);

/// Gives unused memory of the heap back to the system, and returns the bytes that are in use.
size_t cshims_trim_heap(void);

#endif
