#ifndef HEDDLE_OFFLOAD_IMPORTS_H
#define HEDDLE_OFFLOAD_IMPORTS_H

/*
 * Which of Ruby's functions calls are redirected to ours, in which libraries. Once intercepted they stay intercepted: a
 * switch decides for each call.
 */

#include <ruby.h>
#include <stdbool.h>
#include <stddef.h>

/* Leads what is loaded, and with libruby's own call of dlopen what will be, before its Init function runs. */
void heddle_offload_intercept(void);
void heddle_offload_switch(bool on);
bool heddle_offload_on(void);

/* NULL where import tables can and may be changed, else why not. */
const char *heddle_offload_unsupported(void);
/* NULL when the calls of Ruby's own functions are intercepted, else why not. */
const char *heddle_offload_core(void);
/*
 * Libraries other than Ruby's own whose calls are intercepted: how many; the file of each, and an address in
 * it.
 */
size_t heddle_offload_library_count(void);
const char *heddle_offload_library(size_t index, const void **address);

/* Ruby methods by how the native calls are run that Ruby itself makes in them; IDs are added, never taken away. */
typedef enum {
    HEDDLE_METHOD_OTHER,
    HEDDLE_METHOD_QUICK,   /* one quick system call, which waits for no other fiber */
    HEDDLE_METHOD_LOADING, /* holds a lock of the whole thread: never offloaded */
} heddle_method_kind;

void heddle_offload_method(ID method, heddle_method_kind kind);

#endif
