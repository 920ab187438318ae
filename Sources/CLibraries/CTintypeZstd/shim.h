// SPDX-License-Identifier: Apache-2.0

#ifndef CZSTD_SHIM_H
#define CZSTD_SHIM_H

#include <zstd.h>

#endif
