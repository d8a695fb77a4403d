#pragma once

#include "system.h"

/* Makes a system call, and repeats it while signals interrupt it (EINTR). */
#define HEDDLE_RETRY(result, call)                                                                                     \
    do {                                                                                                               \
        (result) = (call);                                                                                             \
    } while ((result) < 0 && errno == EINTR)
