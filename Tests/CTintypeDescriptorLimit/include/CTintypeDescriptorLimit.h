#ifndef C_DESCRIPTOR_LIMIT_H
#define C_DESCRIPTOR_LIMIT_H

#include <stdbool.h>

/// From now on, or no longer, libdispatch gets the file of `/proc` that it opens to look at one of its threads, also
/// over the limit of open files: it ends a process where it can't open that.
///
/// Without effect under a sanitizer, which replaces `open` as well.
void descriptor_limit_spare_dispatch(bool is_spared);

#endif
