#ifndef CZIMG_SHIM_H
#define CZIMG_SHIM_H

#include <zimg.h>

#endif
