#pragma once

/*
 * Decides which functions are intercepted in which libraries: the library's calls of the function then go to Heddle's
 * replacement. The functions stay intercepted; heddle_offload_switch decides whether a replacement does anything
 * (replacements.h).
 */

#include <ruby.h>

/*
 * Intercepts calls of all loaded libraries. Also intercepts dlopen in Ruby's own library, fiddle and ffi, so that
 * libraries loaded later are intercepted before their Init functions run.
 */
void heddle_offload_intercept(void);
/*
 * Tests the interception of calls on a descriptor, and undoes it if the replacement gets unknown arguments. For the
 * parameters, see heddle_io_calls_check (io_calls.h).
 */
void heddle_offload_check_io_calls(VALUE file, VALUE expected);

/* Returns NULL if import tables can be changed and the user has not forbidden it. Otherwise returns the reason. */
const char *heddle_offload_unsupported(void);
/* Returns NULL if calls that Ruby's own library makes are intercepted. Otherwise returns the reason why not. */
const char *heddle_offload_core(void);
/*
 * Lists the functions that could not be intercepted in Ruby's own library, although others were intercepted. Returns
 * the name of the function with this index, or NULL after the last one. Sets `use` to what can't be offloaded without
 * the function, and `why` to the reason why it could not be intercepted.
 */
const char *heddle_offload_missing(size_t index, const char **use, const char **why);
/*
 * The libraries, except Ruby's own, whose calls are intercepted: their number, and the path of each, with an address in
 * the library.
 */
size_t heddle_offload_library_count(void);
const char *heddle_offload_library(size_t index, const void **address);
