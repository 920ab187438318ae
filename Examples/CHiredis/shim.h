// SPDX-License-Identifier: Apache-2.0

#include <hiredis/hiredis.h>
