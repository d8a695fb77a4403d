#pragma once

/* What files that define classes of Ruby share. */

#include <ruby.h>

/* The type of a record that Ruby objects have; the last arguments are its functions. */
#define HEDDLE_TYPE(name, more_flags, ...)                                                                             \
    {                                                                                                                  \
        .wrap_struct_name = name, .function = {__VA_ARGS__}, .flags = RUBY_TYPED_FREE_IMMEDIATELY | (more_flags)       \
    }
/* `dmark` of a record whose only references are these members, by offsetof; with RUBY_TYPED_DECL_MARKING. */
#define HEDDLE_REFERENCES(...) RUBY_REFS_LIST_PTR(((const size_t[]){__VA_ARGS__, RUBY_REF_END}))
/* `dsize` of a record without memory of its own. */
#define HEDDLE_FIXED_SIZE(function, type)                                                                              \
    static size_t function(const void *record)                                                                         \
    {                                                                                                                  \
        return sizeof(type);                                                                                           \
    }

/*
 * The methods of a class that are one expression are rows of a table, METHODS: X(function, name, expression of `self`).
 * It defines the functions, and within Init_… the methods of `class`.
 */
#define HEDDLE_DEFINE_METHOD(function, name, expression)                                                               \
    static VALUE function(VALUE self)                                                                                  \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define HEDDLE_REGISTER_METHOD(function, name, expression) rb_define_method(class, name, function, 0);

/* One for each layer, called by heddle.c. */
void Init_heddle_rack(VALUE heddle);
void Init_heddle_processes(VALUE heddle);
void Init_heddle_offload(VALUE heddle);
void Init_heddle_selector(VALUE heddle);
void Init_heddle_cable(void);
void Init_heddle_callback_report(VALUE heddle);
void Init_heddle_scheduler(VALUE heddle);
