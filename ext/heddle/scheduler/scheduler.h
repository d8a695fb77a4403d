#pragma once

#include <ruby.h>

void Init_heddle_scheduler(VALUE heddle);
