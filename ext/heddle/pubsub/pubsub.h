#pragma once

#include <ruby.h>

void Init_heddle_pubsub(VALUE heddle);
