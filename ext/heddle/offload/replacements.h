#pragma once

/*
 * The functions that replace Ruby's functions in import tables (imports.c). Those for rb_nogvl and its variants decide
 * at every call whether an offload thread makes the call, or Ruby's own function makes it in place, that is, on the
 * calling thread. The one for rb_thread_call_with_gvl lets the job's fiber run the callbacks of an offloaded call. The
 * one for rb_thread_check_ints also raises postponed exceptions.
 */

#include "offload/policy.h"

#include <ruby.h>
#include <ruby/thread.h>

void heddle_offload_switch(bool on);
bool heddle_offload_on(void);

/* The kind of a Ruby method decides how Ruby's native calls within the method are run. A method keeps its kind. */
typedef enum {
    HEDDLE_METHOD_ORDINARY,
    HEDDLE_METHOD_QUICK,   /* makes one quick system call, which never waits for another fiber */
    /*
     * loads a file, such as `require`: its calls are never offloaded, because Ruby's lock for the file belongs to the
     * thread, and another fiber that loads the same file meanwhile would get the warning "circular require"
     */
    HEDDLE_METHOD_LOADING,
} heddle_method_kind;

void heddle_offload_method(ID method, heddle_method_kind kind);

/* Replace Ruby's functions with these names for extensions. */
void *heddle_replaced_nogvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock, void *unblock_data,
                            int flags);
void *heddle_replaced_without_gvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                  void *unblock_data);
void *heddle_replaced_without_gvl2(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                   void *unblock_data);
void *heddle_replaced_with_gvl(void *(*function)(void *), void *data);
void heddle_replaced_check_ints(void);

/* Replace rb_nogvl and rb_thread_call_with_gvl for Ruby's own library. */
void *heddle_replaced_ruby_nogvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                 void *unblock_data, int flags);
void *heddle_replaced_ruby_with_gvl(void *(*function)(void *), void *data);

/* -- shared with io_calls.c ---------------------------------------------------------------------------------------- */

typedef struct {
    void *(*function)(void *data);
    void *data;
    int64_t began, ended;
} heddle_timed_call;

/* Calls the function of a heddle_timed_call and measures it, without the time that Ruby then waits for the GVL. */
void *heddle_timed_call_run(void *data);
/* Records a call that was made in place. Preserves errno. */
void heddle_timed_call_record(heddle_function *known, const heddle_timed_call *call);

heddle_function *heddle_function_of_call(void *function);
/*
 * Does this call, which Ruby itself makes, run in place? Yes while Ruby loads a file. While `known` has been quick on
 * average, yes also in methods of the kind QUICK, and for calls that open a file without waiting (open_calls.h).
 */
bool heddle_function_is_inline_in_ruby(const heddle_function *known, const void *data);
