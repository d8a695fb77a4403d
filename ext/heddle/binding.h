#pragma once

/* Declarations for all files that define Ruby classes. */

#include <ruby.h>

/* The type of a record that Ruby objects have; the last arguments are its functions. */
#define HEDDLE_TYPE(name, more_flags, ...)                                                                             \
    {                                                                                                                  \
        .wrap_struct_name = name, .function = {__VA_ARGS__}, .flags = RUBY_TYPED_FREE_IMMEDIATELY | (more_flags)       \
    }
/*
 * `dmark` for a record whose only references are these members, given by offsetof; use it with RUBY_TYPED_DECL_MARKING.
 */
#define HEDDLE_REFERENCES(...) RUBY_REFS_LIST_PTR(((const size_t[]){__VA_ARGS__, RUBY_REF_END}))
/* Defines a function that checks an object and returns its record. */
#define HEDDLE_RECORD_OF(function, record, data_type)                                                                  \
    static record *function(VALUE object)                                                                              \
    {                                                                                                                  \
        return rb_check_typeddata(object, &(data_type));                                                               \
    }
/* Defines a function that allocates an object with a record of zeros. */
#define HEDDLE_ALLOCATE(function, record, data_type)                                                                   \
    static VALUE function(VALUE class)                                                                                 \
    {                                                                                                                  \
        record *zeros;                                                                                                 \
        return TypedData_Make_Struct(class, record, &(data_type), zeros);                                              \
    }

/* A class that the collector neither frees nor moves. Without `allocate` only C makes its objects. */
static inline VALUE heddle_define_class(VALUE under, const char *name, rb_alloc_func_t allocate)
{
    VALUE class = rb_define_class_under(under, name, rb_cObject);
    rb_gc_register_mark_object(class);
    if (allocate)
        rb_define_alloc_func(class, allocate);
    else
        rb_undef_alloc_func(class);
    return class;
}

/*
 * Methods of a class that consist of one expression are rows of a table, METHODS: X(function, name, expression of
 * `self`). The table defines the functions, and within Init_… the methods of `class`. The first macro can also be used
 * alone.
 */
#define HEDDLE_DEFINE_METHOD(function, name, expression)                                                               \
    static VALUE function(VALUE self)                                                                                  \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define HEDDLE_REGISTER_METHOD(function, name, expression) rb_define_method(class, name, function, 0);
/*
 * The same for methods with one argument, METHODS_1: X(function, name, argument, expression of `self` and the
 * argument).
 */
#define HEDDLE_DEFINE_METHOD_1(function, name, argument, expression)                                                   \
    static VALUE function(VALUE self, VALUE argument)                                                                  \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define HEDDLE_REGISTER_METHOD_1(function, name, argument, expression) rb_define_method(class, name, function, 1);

/* Each layer has one; heddle.c calls it. */
void Init_heddle_rack(VALUE heddle);
void Init_heddle_processes(VALUE heddle);
void Init_heddle_pubsub(VALUE heddle);
void Init_heddle_offload(VALUE heddle);
void Init_heddle_selector(VALUE heddle);
void Init_heddle_cable(void);
void Init_heddle_callback_report(VALUE heddle);
void Init_heddle_scheduler(VALUE heddle);
