#pragma once

/*
 * Finds the function that Fiddle calls. Without the GVL, Fiddle always runs the same function of its own, which then
 * calls the other library's function. So the library of Fiddle's function does not tell whether the call can be
 * offloaded. The argument of Fiddle's function points to a record that contains the address of the called function. A
 * trial call of a known function shows the offset of this address in the record.
 */

#include "offload/policy.h"

#include <ruby.h>

/* Is this one of Fiddle's own functions? */
bool heddle_is_fiddle_function(const heddle_function *function);

/*
 * Returns the function that Fiddle is about to call, or NULL if it is unknown. `function` is Fiddle's own one, and
 * `argument` is its argument. At first use, makes the trial call, which runs Ruby methods that don't wait. Called with
 * the GVL.
 */
heddle_function *heddle_target_find(const heddle_function *function, const void *argument);

/* Returns the address of a function that does nothing, for the trial call. */
void *heddle_target_probe(void);
