#pragma once

#include <ruby.h>

void Init_heddle_account(VALUE heddle);
