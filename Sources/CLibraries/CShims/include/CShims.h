#ifndef CSHIMS_H
#define CSHIMS_H

// Linux calls that the Glibc overlay does not import.

/// Returns a blocking, close-on-exec eventfd, or -1 with errno set.
int cshims_eventfd(void);

/// Names the calling thread. Linux keeps the first 15 bytes.
void cshims_set_thread_name(const char *_Nonnull name);

/// Opens a file for reading if that takes no waiting: `EAGAIN` where the disk would have to be asked.
///
/// Follows no link. Returns the descriptor, or -1 with errno set (`ENOSYS` before Linux 5.12).
int cshims_open_cached(int folder, const char *_Nonnull path);

/// Reads from the start of a file what is in memory: `EAGAIN` or a short count where the disk would have to be asked.
long cshims_read_cached(int descriptor, void *_Nonnull buffer, unsigned long count);

enum {
    CSHIMS_LOCK_NONE = 0,
    CSHIMS_LOCK_SHARED = 1,
    CSHIMS_LOCK_TRY = 2,
    CSHIMS_LOCK_WAIT = 3,
};

/// Locks or unlocks one byte of an open file, against every other open file, in any process; -1 with errno set.
///
/// The lock ends with the last descriptor of the open file.
int cshims_lock_byte(int descriptor, long offset, int kind);

/// The magic number of the file system of an open file, or -1.
long cshims_file_system_type(int descriptor);

#endif
