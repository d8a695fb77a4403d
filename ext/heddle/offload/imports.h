#pragma once

/*
 * Decides which functions are intercepted in which libraries. An intercepted function stays intercepted: a switch
 * decides at each call.
 */

#include <ruby.h>

/*
 * Intercepts the loaded libraries, and libruby's dlopen, so that later ones are intercepted before their Init functions
 * run.
 */
void heddle_offload_intercept(void);
/* Checks the interception of calls on a descriptor (io_calls.h), and undoes it if they arrive in an unknown way. */
void heddle_offload_check_io_calls(VALUE file, VALUE expected);

/* NULL if import tables can and may be changed; otherwise the reason why not. */
const char *heddle_offload_unsupported(void);
/* NULL if the calls of Ruby's own functions are intercepted; otherwise the reason why not. */
const char *heddle_offload_core(void);
/*
 * If some functions of Ruby's own library are intercepted and others are not, returns the name of one of these others,
 * and sets what is lost without it, and the reason. Returns NULL after the last one.
 */
const char *heddle_offload_missing(size_t index, const char **use, const char **why);
/*
 * The libraries, other than Ruby's own, whose calls are intercepted: their number, and the file of each with an address
 * in it.
 */
size_t heddle_offload_library_count(void);
const char *heddle_offload_library(size_t index, const void **address);
