#pragma once

/* Distinguishes Heddle's own Ruby code, which expects switches of fibers only at its waits, from users' code. */

#include <ruby.h>

/* Is the current code of this thread Heddle's own, which may be interrupted only at its waits? */
bool heddle_own_code_runs(void);
/* Is the code at this path, a String, a user's: neither Heddle's own nor Ruby's? */
bool heddle_own_code_excludes(VALUE path);
/*
 * Arrays of String: code whose path begins with one of `own` is Heddle's; with one of `neutral`, it counts as its
 * caller's.
 */
void heddle_own_code_set_paths(VALUE own, VALUE neutral);
