#pragma once

#include <ruby.h>

void Init_heddle_net(VALUE heddle);
