// SPDX-License-Identifier: Apache-2.0

#ifndef CLIBJPEG_SHIM_H
#define CLIBJPEG_SHIM_H

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

#endif
