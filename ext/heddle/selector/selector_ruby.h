#ifndef HEDDLE_SELECTOR_RUBY_H
#define HEDDLE_SELECTOR_RUBY_H

#include <ruby.h>

void Init_heddle_selector(VALUE heddle);

#endif
