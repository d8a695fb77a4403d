#pragma once

#include "system.h"

/* Makes a system call until no signal interrupts it. */
#define HEDDLE_RETRY(result, call)                                                                                     \
    do {                                                                                                               \
        (result) = (call);                                                                                             \
    } while ((result) < 0 && errno == EINTR)
