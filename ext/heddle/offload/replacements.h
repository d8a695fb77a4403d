#pragma once

/*
 * The functions that take the place of Ruby's in import tables (imports.c). Each decides at every call whether an
 * offload thread makes it, or calls Ruby's function.
 */

#include "offload/policy.h"

#include <ruby.h>
#include <ruby/thread.h>

void heddle_offload_switch(bool on);
bool heddle_offload_on(void);

/*
 * The kinds of Ruby methods, by how the native calls inside them are run. Methods are added to the lists, and never
 * removed.
 */
typedef enum {
    HEDDLE_METHOD_ORDINARY,
    HEDDLE_METHOD_QUICK,   /* one quick system call, which waits for no other fiber */
    HEDDLE_METHOD_LOADING, /* holds a lock of the whole thread: never offloaded */
} heddle_method_kind;

void heddle_offload_method(ID method, heddle_method_kind kind);

/* Replaces rb_nogvl for extensions. */
void *heddle_replaced_nogvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock, void *unblock_data,
                            int flags);
void *heddle_replaced_without_gvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                  void *unblock_data);
void *heddle_replaced_without_gvl2(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                   void *unblock_data);
void *heddle_replaced_with_gvl(void *(*function)(void *), void *data);
void heddle_replaced_check_ints(void);

/* Replaces rb_nogvl for Ruby's own library. */
void *heddle_replaced_ruby_nogvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                 void *unblock_data, int flags);
void *heddle_replaced_ruby_with_gvl(void *(*function)(void *), void *data);

/* -- shared with io_calls.c ---------------------------------------------------------------------------------------- */

typedef struct {
    void *(*function)(void *data);
    void *data;
    int64_t began, ended;
} heddle_timed_call;

/* Measures only the function (heddle_timed_call): waiting for the GVL afterwards does not count. */
void *heddle_timed_call_run(void *data);
/* Records a call in place; keeps errno. */
void heddle_timed_call_record(heddle_function *known, const heddle_timed_call *call);

heddle_function *heddle_function_of_call(void *function);
/*
 * Does this call of Ruby itself run inline? Yes for open calls, and for methods on the list of quick methods, as long
 * as they are quick.
 */
bool heddle_function_is_inline_in_ruby(const heddle_function *known, const void *data);
