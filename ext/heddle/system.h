#pragma once

/* The system headers that most files need, and a macro for system calls. */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Makes a system call, and repeats it while signals interrupt it (EINTR). */
#define HEDDLE_RETRY(result, call)                                                                                     \
    do {                                                                                                               \
        (result) = (call);                                                                                             \
    } while ((result) < 0 && errno == EINTR)
