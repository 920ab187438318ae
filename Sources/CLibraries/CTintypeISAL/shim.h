#ifndef CISAL_SHIM_H
#define CISAL_SHIM_H

// Nothing for Swift: its state has members of 65,000 bytes. CTintypeInflate has what is needed.

#endif
