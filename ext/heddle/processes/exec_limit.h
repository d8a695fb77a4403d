#pragma once

/*
 * Sets RLIMIT_NOFILE of programs that this process or a child of it starts. The server raises its own soft limit; a
 * program that uses select(2) must not inherit that, because its fd_set has room for only 1,024 descriptors.
 */

#include "system.h"

#include <sys/resource.h>

/*
 * From now on programs that Ruby starts get the soft limit `soft` where they would inherit `raised`. Returns false if
 * Ruby's calls of exec can't be intercepted on this system.
 */
bool heddle_exec_with_limit(rlim_t soft, rlim_t raised);
