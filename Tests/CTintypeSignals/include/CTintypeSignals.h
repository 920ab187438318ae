#ifndef CSIGNALS_H
#define CSIGNALS_H

// A handler that leaves by `siglongjmp`, which Swift can't have.

/// Installs a handler for faults in the page at `page`, over the present one, to which it hands on all others.
void csignals_install(void *_Nonnull page);

/// Touches the page; whether the handler has left because of it.
int csignals_fault(void);

#endif
