#ifndef HEDDLE_OFFLOAD_IMPORTS_H
#define HEDDLE_OFFLOAD_IMPORTS_H

/*
 * Decides which functions are intercepted in which libraries. An intercepted function stays intercepted: a switch
 * decides at each call.
 */

#include <ruby.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Intercepts the loaded libraries, and libruby's dlopen, so that later ones are intercepted before their Init functions
 * run.
 */
void heddle_offload_intercept(void);
void heddle_offload_switch(bool on);
bool heddle_offload_on(void);

/* NULL where import tables can and may be changed, else the reason why not. */
const char *heddle_offload_unsupported(void);
/* NULL when the calls of Ruby's own functions are intercepted, else the reason why not. */
const char *heddle_offload_core(void);
/*
 * The libraries, other than Ruby's own, whose calls are intercepted: their number; the file of each, and an address in
 * it.
 */
size_t heddle_offload_library_count(void);
const char *heddle_offload_library(size_t index, const void **address);

/* Lists Ruby methods by how the native calls inside them are run; IDs are added, never removed. */
typedef enum {
    HEDDLE_METHOD_OTHER,
    HEDDLE_METHOD_QUICK,   /* one quick system call, which waits for no other fiber */
    HEDDLE_METHOD_LOADING, /* holds a lock of the whole thread: never offloaded */
} heddle_method_kind;

void heddle_offload_method(ID method, heddle_method_kind kind);

#endif
