#ifndef HEDDLE_OFFLOAD_LIBC_HOOKS_H
#define HEDDLE_OFFLOAD_LIBC_HOOKS_H

/*
 * Waits that a library makes with the GVL held: libc's poll, select, sleep and the like, redirected to functions that
 * offload them. Only for libraries that were named: their code is left by the fiber though it believes to hold the GVL,
 * so it must have no state of its own beside what belongs to one fiber, and hold no lock.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * Beginnings of file names; copied. Those that are loaded are intercepted at the next heddle_libc_intercept. 0 or
 * -ENOMEM.
 */
int heddle_libc_libraries(const char *const *names, size_t count);
void heddle_libc_intercept(void);
/* Libraries that are intercepted, and the file of each. */
size_t heddle_libc_count(void);
const char *heddle_libc_library(size_t index);

#endif
