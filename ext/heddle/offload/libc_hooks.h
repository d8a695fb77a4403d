#pragma once

/*
 * Intercepts waits that a library makes while it holds the GVL: calls of libc's poll, select, sleep and similar
 * functions go to functions that offload them. While such a wait is offloaded, other fibers run, although the library
 * relies on holding the GVL. So this is safe only if the library holds no lock during the wait, and shares no state
 * between calls. Therefore only libraries that the user has listed are treated like this.
 */

#include "system.h"

/* Intercepts calls of the loaded libraries that are on HEDDLE_LIST_LIBC. */
void heddle_libc_intercept(void);
/* The number of intercepted libraries, and the path of each. */
size_t heddle_libc_count(void);
const char *heddle_libc_library(size_t index);
