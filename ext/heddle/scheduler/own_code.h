#pragma once

/* Distinguishes Heddle's own Ruby code, which expects switches of fibers only at its waits, from users' code. */

#include <ruby.h>

/* Does this thread run Heddle's own code, which may be interrupted only at its waits? */
bool heddle_own_code_runs(void);
/* Is the code at this path (a String) neither Heddle's nor Ruby's? */
bool heddle_is_user_code(VALUE path);
/*
 * Sets two Arrays of path prefixes (String). Code whose path begins with a prefix in `own` is Heddle's. Code whose path
 * begins with a prefix in `neutral` counts as code of its caller.
 */
void heddle_own_code_set_paths(VALUE own, VALUE neutral);
