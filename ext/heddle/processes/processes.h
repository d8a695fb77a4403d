#pragma once

#include <ruby.h>

void Init_heddle_processes(VALUE heddle);
