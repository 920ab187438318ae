// SPDX-License-Identifier: Apache-2.0

#ifndef CISAL_SHIM_H
#define CISAL_SHIM_H

// Exports nothing to Swift, because ISA-L's state has members of 65,000 bytes. CTintypeInflate exports the necessary
// functions.

#endif
