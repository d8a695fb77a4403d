#pragma once

/*
 * Decides which functions are intercepted in which libraries. If a function is intercepted in a library, the library's
 * calls of the function go to Heddle's replacement. The functions stay intercepted; while heddle_offload_switch
 * (replacements.h) has switched offload off, a replacement only calls the original function.
 */

#include <ruby.h>

/*
 * Intercepts calls that the loaded libraries make, except Heddle's own. In Ruby's own library, fiddle and ffi, also
 * intercepts dlopen, so that libraries that are loaded later are treated before their Init functions run.
 */
void heddle_offload_intercept(void);
/*
 * Tests the interception of calls on a descriptor, and undoes it if the replacement is not called or gets unknown
 * arguments. For the parameters, see heddle_io_calls_check (io_calls.h).
 */
void heddle_offload_check_io_calls(VALUE file, VALUE expected);

/* Returns NULL if import tables can be changed and the user has not forbidden it. Otherwise returns the reason. */
const char *heddle_offload_unsupported(void);
/* Returns NULL if functions of Ruby are intercepted in Ruby's own library. Otherwise returns the reason why not. */
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
