#pragma once

/*
 * Intercepts waits that a library makes with the GVL held: libc's poll, select, sleep and the like are redirected to
 * functions that offload them. This applies only to libraries that the user has named: other fibers run although the
 * library's code assumes that it holds the GVL. So the library must keep no state between calls, and hold no lock.
 */

#include "system.h"

/*
 * Adds beginnings of file names, which are copied. Loaded libraries are intercepted at the next heddle_libc_intercept.
 * Returns 0 or -ENOMEM.
 */
int heddle_libc_add_names(const char *const *names, size_t count);
void heddle_libc_intercept(void);
/* The number of intercepted libraries, and the file of each. */
size_t heddle_libc_count(void);
const char *heddle_libc_library(size_t index);
