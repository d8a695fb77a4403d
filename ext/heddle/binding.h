#pragma once

/* What files that define classes of Ruby share. */

#include <ruby.h>

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
