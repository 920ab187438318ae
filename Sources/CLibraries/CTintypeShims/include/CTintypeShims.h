// SPDX-License-Identifier: Apache-2.0

#ifndef CSHIMS_H
#define CSHIMS_H

#include <stddef.h>

// Wrappers for Linux calls that the Glibc overlay does not import.

/// Returns the number of bytes received on a TCP connection so far, or -1 if it is unknown.
long long cshims_bytes_read(int socket);

/// Returns a blocking, close-on-exec eventfd, or -1 with errno set.
int cshims_eventfd(void);

/// Names the calling thread. Linux keeps the first 15 bytes.
void cshims_set_thread_name(const char *_Nonnull name);

/// Requests short time slices for the calling thread, so that it waits less for a processor when it wakes up. Its share
/// of processor time stays the same. Takes effect from Linux 6.12 on (EEVDF). Older kernels ignore it.
void cshims_prefer_short_slices(long nanoseconds);

/// Gives the calling thread the nice value of the main thread, minus `lowering`.
///
/// Threads that it creates do not inherit a negative value. Changes nothing if the process lacks the right (RLIMIT_NICE
/// or CAP_SYS_NICE).
void cshims_lower_nice_value(int lowering);

/// Gives the calling thread the nice value of the main thread, but at most 0, if its own is negative and lower.
void cshims_restore_nice_value(void);

/// Opens a file for reading if that needs no disk access. Fails with `EAGAIN` otherwise.
///
/// Does not follow links. Returns the descriptor, or -1 with errno set (`ENOSYS` before Linux 5.12).
int cshims_open_cached(int folder, const char *_Nonnull path);

/// Opens a file below a folder, without following links, neither on the way nor at the end.
///
/// Returns the descriptor, or -1 with errno set (`ENOSYS` before Linux 5.6, `EPERM` in some sandboxes).
int cshims_open_beneath(int folder, const char *_Nonnull path, int flags);

/// Reads the bytes at the start of a file that are in memory. Fails with `EAGAIN` or returns a short count if more
/// would need disk access.
long cshims_read_cached(int descriptor, void *_Nonnull buffer, unsigned long count);

enum {
    CSHIMS_LOCK_NONE = 0,
    CSHIMS_LOCK_TRY = 1,
};

/// Locks or unlocks one byte of an open file, exclusively against other open files in any process. Returns -1 with
/// errno set on failure.
///
/// The kernel releases the lock when the last descriptor of the open file is closed, including copies in forked
/// processes. Never waits.
int cshims_lock_byte(int descriptor, long offset, int kind);

/// Releases all locks of an open file, for all processes that have a descriptor of it.
int cshims_unlock_all(int descriptor);

/// Returns the magic number of the file system of an open file, or -1.
long cshims_file_system_type(int descriptor);

/// Makes the first `size` bytes of a file independent of other files and fills holes, so that a later write there needs
/// no more disk space. Returns 0, also if the file system does not support shared blocks, or -1 with errno set.
int cshims_own_blocks(int descriptor, long size);

/// Renames a file. Fails with `EEXIST` if `to` exists, or with `EINVAL` if the file system does not support this.
int cshims_rename_exclusively(int fromFolder, const char *_Nonnull from, int toFolder, const char *_Nonnull to);

/// The events to wait for on a descriptor, or the events it is ready for.
enum {
    CSHIMS_READABLE = 1,
    CSHIMS_WRITABLE = 2,
    /// Only reported, not requested: the peer closed the connection, or the descriptor failed.
    CSHIMS_BROKEN = 4,
    /// Only requested, not reported: report each change to ready once, whether or not the data is read.
    CSHIMS_ONCE_EACH = 8,
    /// The peer sends nothing more.
    CSHIMS_PEER_DONE = 16,
};

/// A descriptor that is ready.
typedef struct {
    int descriptor;
    int events;
} cshims_event;

/// Returns a close-on-exec epoll descriptor, or -1 with errno set.
int cshims_epoll_create(void);

/// Adds a descriptor to an epoll set, or changes its events. 0 removes it. Returns 0, or -1 with errno set.
int cshims_epoll_set(int epoll, int descriptor, int events);

/// Adds a descriptor to an epoll set. Returns 0, or -1 with errno set.
int cshims_epoll_add(int epoll, int descriptor, int events);

/// Waits at most `milliseconds` (-1: without limit), and returns the number of ready descriptors. Returns 0 if a signal
/// interrupts the wait, or -1 with errno set on failure.
int cshims_epoll_wait(int epoll, cshims_event *_Nonnull events, int capacity, int milliseconds);

/// Accepts a connection that does not block, closes on exec and sends without delay. Writes the peer's IPv6 address, or
/// its IPv4 address in IPv6 form, to `address`. Returns the descriptor, or -1 with errno set.
int cshims_accept(int listener, unsigned char address[_Nonnull 16]);

/// Sends two blocks in one call. Returns the number of sent bytes, or -1 with errno set. A closed connection is an
/// error, not a signal.
long cshims_send(
    int socket, const void *_Nullable head, size_t headCount, const void *_Nullable body, size_t bodyCount);

/// Sends a part of a file. Returns the number of sent bytes, or -1 with errno set.
long cshims_send_file(int socket, int file, long offset, size_t count);

/// Returns the number of the calling thread. Threads are numbered from 1 in the order of their first call.
unsigned cshims_thread_number(void);

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <time.h>
#endif

/// Returns a counter that grows with time at an unknown rate, the same for all processors.
///
/// Reads the processor's own counter, which takes a few nanoseconds. A call to the clock takes tens of nanoseconds.
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

/// Returns `size` bytes of untouched memory that start at a multiple of `alignment`, or NULL.
///
/// The system allocates pages only when they are first accessed. Unmap the memory with `munmap`.
void *_Nullable cshims_map(size_t size, size_t alignment);

/// Moves `size` mapped bytes to another mapped address, without a copy. Returns 0, or -1 with errno set.
int cshims_move_mapped(void *_Nonnull from, void *_Nonnull to, size_t size);

/// Registers a mapped file, so that the process survives when the file's memory is unavailable. This happens if the
/// file was truncated, or if its disk is full or broken.
///
/// Installs a handler of `SIGBUS`. If the fault is in a registered mapping, the handler replaces the whole mapping with
/// empty private memory. It passes all other signals to the previous handler. Returns the number of the registration,
/// or -1 with errno set.
int cshims_guard_mapping(void *_Nonnull base, size_t size);

/// Unregisters a mapping. Call it before you unmap the memory.
void cshims_release_mapping(int index);

/// Whether empty memory has replaced the mapped file.
int cshims_is_mapping_lost(int index);

/// Whether the process can allocate `size` bytes and still have a reserve for small allocations.
///
/// Checks only limits of the process (`RLIMIT_AS`, `RLIMIT_DATA`). Without a limit it returns true after two system
/// calls. Swift ends the process if a small allocation fails, so large allocations must leave a reserve.
int cshims_has_room(size_t size);

/// Whether the process has a memory limit of its own (`RLIMIT_AS`, `RLIMIT_DATA`).
int cshims_has_memory_limit(void);

/// Returns the size of a new thread's stack in bytes.
size_t cshims_stack_size(void);

/// Reduces the process's use of address space, at some cost in speed.
///
/// New threads get stacks of 1 MiB instead of the usual 8 MiB, which they hardly ever use. The allocator uses only one
/// arena: another one reserves 64 MiB, and 128 MiB while it is created, so that a thread that starts meanwhile may find
/// no room for its stack. Call it only from a program's own main function, because it affects the whole process.
void cshims_spare_address_space(void);

/// Whether the process can open `count` files and still have a reserve of descriptors. If not, errno is EMFILE or
/// ENFILE.
int cshims_has_descriptors(int count);

/// Returns a cached block of at least `size` bytes, and at most a quarter more, or NULL if no block fits. Sets `actual`
/// to its size.
///
/// The block's bytes are zero or its old contents.
void *_Nullable cshims_take_block(size_t size, size_t *_Nonnull actual);

/// Caches an unused `malloc` block for `cshims_take_block`. Returns 0 if the caller must free it instead.
///
/// The cache holds at most four blocks, the newest ones, with 64 MiB in total. The system can reclaim their pages if
/// memory is short (MADV_FREE), and otherwise reusing a block costs no new pages. If the process has a memory limit of
/// its own, the cache stays empty.
int cshims_keep_block(void *_Nonnull start, size_t size);

/// Frees all cached blocks.
void cshims_drop_blocks(void);

/// Begins (1) or ends (-1) a pause, in which the cache is not used. Measurements need such pauses.
void cshims_pause_blocks(int change);

/// Returns unused heap memory to the system. Returns the number of bytes in use.
size_t cshims_trim_heap(void);

#endif
