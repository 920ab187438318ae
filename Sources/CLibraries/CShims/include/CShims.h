#ifndef CSHIMS_H
#define CSHIMS_H

#include <stddef.h>

// Linux calls that the Glibc overlay does not import.

/// Returns a blocking, close-on-exec eventfd, or -1 with errno set.
int cshims_eventfd(void);

/// Names the calling thread. Linux keeps the first 15 bytes.
void cshims_set_thread_name(const char *_Nonnull name);

/// What a descriptor is waited for, or ready for.
enum {
    CSHIMS_READABLE = 1,
    CSHIMS_WRITABLE = 2,
    /// Only reported, never waited for: the peer left, or the descriptor failed.
    CSHIMS_BROKEN = 4,
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

/// Returns `size` bytes of untouched memory that starts at a multiple of `alignment`, or NULL.
///
/// Nothing is set aside for it before it is touched. Unmap it with `munmap`.
void *_Nullable cshims_map(size_t size, size_t alignment);

/// Moves `size` mapped bytes to where other memory is mapped, without a copy. Returns 0, or -1 with errno set.
int cshims_move_mapped(void *_Nonnull from, void *_Nonnull to, size_t size);

/// Gives unused memory of the heap back to the system, and returns the bytes that are in use.
size_t cshims_trim_heap(void);

#endif
