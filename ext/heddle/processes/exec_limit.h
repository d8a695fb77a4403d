#pragma once

/*
 * Sets RLIMIT_NOFILE for the programs that this process and its children start. The server raises its own soft limit. A
 * program that uses select(2) must not inherit the raised limit, because its fd_set has room for only 1,024
 * descriptors.
 */

#include "system.h"

#include <sys/resource.h>

/*
 * From now on a program that Ruby starts gets the soft limit `soft` if it would otherwise inherit the soft limit
 * `raised`. Returns false if Ruby's calls of exec can't be intercepted on this system.
 */
bool heddle_exec_with_limit(rlim_t soft, rlim_t raised);
