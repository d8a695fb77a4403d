#pragma once

#include <ruby.h>

void Init_heddle_concurrency(VALUE heddle);
void Init_heddle_alarm_heap(VALUE concurrency); /* called by Init_heddle_concurrency */
