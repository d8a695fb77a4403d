#ifndef HEDDLE_TEST_RUBY_4_1_H
#define HEDDLE_TEST_RUBY_4_1_H

/*
 * What Ruby 4.0 and 4.1 have changed in the functions that the extension calls, on top of the headers of an older Ruby:
 * test/setup/ruby_4_1_test.rb compiles with it, so that a break shows before the newer Ruby is at hand.
 */

#include <ruby.h>
#include <ruby/debug.h>
#include <ruby/io.h>
#include <ruby/io/buffer.h>
#include <ruby/thread.h>
#include <ruby/version.h>
#include <ruby/fiber/scheduler.h>
#include <stdbool.h>

/* 4.0: blocking operations. */
#define HAVE_RB_FIBER_SCHEDULER_BLOCKING_OPERATION_EXTRACT 1

#if RUBY_API_VERSION_MAJOR < 4
typedef struct rb_fiber_scheduler_blocking_operation rb_fiber_scheduler_blocking_operation_t;
rb_fiber_scheduler_blocking_operation_t *rb_fiber_scheduler_blocking_operation_extract(VALUE self);
int rb_fiber_scheduler_blocking_operation_execute(rb_fiber_scheduler_blocking_operation_t *operation);
int rb_fiber_scheduler_blocking_operation_cancel(rb_fiber_scheduler_blocking_operation_t *operation);

/* 4.0: the arguments are not const. */
VALUE ruby_4_0_fiber_raise(VALUE fiber, int argc, VALUE *argv);
#define rb_fiber_raise ruby_4_0_fiber_raise
#endif

/* 4.1: a third parameter. Use ALLOCV_N or rb_alloc_tmp_buffer2, which exist in every version. */
void *ruby_4_1_alloc_tmp_buffer(volatile VALUE *store, long length, bool mark);
#define rb_alloc_tmp_buffer ruby_4_1_alloc_tmp_buffer

#undef RUBY_API_VERSION_MAJOR
#undef RUBY_API_VERSION_MINOR
#define RUBY_API_VERSION_MAJOR 4
#define RUBY_API_VERSION_MINOR 1

/* 4.1: these are gone. */
#pragma GCC poison rb_alloc_tmp_buffer_with_count rb_iterate rb_gc_force_recycle rb_class_descendants
#pragma GCC poison rb_data_object_alloc rb_data_typed_object_alloc rb_clone_setup rb_dup_setup
#pragma GCC poison rb_postponed_job_register rb_postponed_job_register_one rbimpl_rtypeddata_p

#endif
