// SPDX-License-Identifier: Apache-2.0

#ifndef C_DESCRIPTOR_LIMIT_H
#define C_DESCRIPTOR_LIMIT_H

#include <stdbool.h>

/// Sets whether libdispatch may open the `/proc` file of one of its threads beyond the limit of open files.
///
/// libdispatch ends the process if it cannot open that file. This has no effect with a sanitizer, which replaces `open`
/// too.
void descriptor_limit_spare_dispatch(bool is_spared);

#endif
