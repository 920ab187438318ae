#ifndef CSHIMS_H
#define CSHIMS_H

// Linux calls that the Glibc overlay does not import.

/// Returns a blocking, close-on-exec eventfd, or -1 with errno set.
int cshims_eventfd(void);

/// Names the calling thread. Linux keeps the first 15 bytes.
void cshims_set_thread_name(const char *_Nonnull name);

#endif
