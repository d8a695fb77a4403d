#pragma once

/*
 * The functions that take the place of Ruby's in import tables (imports.c). Each of them decides at every call: it lets
 * an offload thread make the call, or makes it in place, by Ruby's own function.
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
    /*
     * `require` and others, never offloaded: Ruby's lock of a file belongs to the thread, so another fiber that loads
     * the same file meanwhile would get "circular require"
     */
    HEDDLE_METHOD_LOADING,
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
 * Does this call of Ruby itself run in place? Yes where Ruby loads a file. As long as such calls are quick, also where
 * it opens a file without waiting (open_calls.h), and for methods on the list of quick ones.
 */
bool heddle_function_is_inline_in_ruby(const heddle_function *known, const void *data);
