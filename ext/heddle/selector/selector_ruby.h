#pragma once

#include <ruby.h>

void Init_heddle_selector(VALUE heddle);
