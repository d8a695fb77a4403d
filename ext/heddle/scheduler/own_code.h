#ifndef HEDDLE_OWN_CODE_H
#define HEDDLE_OWN_CODE_H

/* Tells Heddle's own Ruby code, which expects switches of fibers only where it waits, from a user's. */

#include <ruby.h>
#include <stdbool.h>

/* Has this thread's current code been written to be interrupted only where it waits? */
bool heddle_own_code_runs(void);
/* Is what is at this path, a String, neither Heddle's own code nor Ruby's? */
bool heddle_own_code_excludes(VALUE path);
/*
 * Code whose path begins with one of these is own code; with one of those, neither own nor a user's: Arrays of String.
 */
void heddle_own_code_set_paths(VALUE own, VALUE neutral);

#endif
