// SPDX-License-Identifier: Apache-2.0

#ifndef CSIGNALS_H
#define CSIGNALS_H

// A handler that leaves with `siglongjmp`, which Swift does not support.

/// Installs a handler for faults in the page at `page`, which forwards all others to the previous handler.
void csignals_install(void *_Nonnull page);

/// Touches the page, and returns whether the handler has left because of it.
int csignals_fault(void);

#endif
