#pragma once

/* Declarations for all files that define Ruby classes. */

#include <ruby.h>

/*
 * Initializes an rb_data_type_t, which describes the C record inside a Ruby object. The last arguments initialize the
 * functions of the rb_data_type_t, such as `.dfree = f`.
 */
#define HEDDLE_TYPE(name, more_flags, ...)                                                                             \
    {                                                                                                                  \
        .wrap_struct_name = name, .function = {__VA_ARGS__}, .flags = RUBY_TYPED_FREE_IMMEDIATELY | (more_flags)       \
    }
/*
 * The value of `dmark` for a record. The arguments are the offsets (offsetof) of all its members that refer to Ruby
 * objects. The type needs the flag RUBY_TYPED_DECL_MARKING.
 */
#define HEDDLE_REFERENCES(...) RUBY_REFS_LIST_PTR(((const size_t[]){__VA_ARGS__, RUBY_REF_END}))
/* Defines a function that returns the record of an object. It raises TypeError for an object of another type. */
#define HEDDLE_RECORD_OF(function, record, data_type)                                                                  \
    static record *function(VALUE object)                                                                              \
    {                                                                                                                  \
        return rb_check_typeddata(object, &(data_type));                                                               \
    }
/* Defines the allocation function of a class. It makes an object whose record is all zeros. */
#define HEDDLE_ALLOCATE(function, record, data_type)                                                                   \
    static VALUE function(VALUE class)                                                                                 \
    {                                                                                                                  \
        record *zeros;                                                                                                 \
        return TypedData_Make_Struct(class, record, &(data_type), zeros);                                              \
    }

/*
 * Defines a class that the garbage collector neither frees nor moves. If `allocate` is NULL, only C code can make its
 * objects.
 */
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
 * For methods whose body is one expression. A file lists them in a macro METHODS(X), with a row X(function, name,
 * expression of `self`) for each. METHODS(HEDDLE_DEFINE_METHOD) then defines the functions, and
 * METHODS(HEDDLE_REGISTER_METHOD) within Init_… adds the methods to `class`. A file with one such method can use
 * HEDDLE_DEFINE_METHOD alone.
 */
#define HEDDLE_DEFINE_METHOD(function, name, expression)                                                               \
    static VALUE function(VALUE self)                                                                                  \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define HEDDLE_REGISTER_METHOD(function, name, expression) rb_define_method(class, name, function, 0);
/*
 * The two macros below do the same for methods with one argument. The rows are X(function, name, argument, expression
 * of `self` and the argument).
 */
#define HEDDLE_DEFINE_METHOD_1(function, name, argument, expression)                                                   \
    static VALUE function(VALUE self, VALUE argument)                                                                  \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define HEDDLE_REGISTER_METHOD_1(function, name, argument, expression) rb_define_method(class, name, function, 1);

/* heddle.c calls these functions when Ruby loads the extension. */
void Init_heddle_rack(VALUE heddle);
void Init_heddle_processes(VALUE heddle);
void Init_heddle_pubsub(VALUE heddle);
void Init_heddle_offload(VALUE heddle);
void Init_heddle_selector(VALUE heddle);
void Init_heddle_cable(void);
void Init_heddle_callback_report(VALUE heddle);
void Init_heddle_scheduler(VALUE heddle);
