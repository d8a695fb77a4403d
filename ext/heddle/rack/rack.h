#pragma once

#include <ruby.h>

void Init_heddle_rack(VALUE heddle);
