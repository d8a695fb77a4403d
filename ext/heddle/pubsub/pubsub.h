#pragma once

#include <ruby.h>

void Init_heddle_pubsub(VALUE heddle);
void Init_heddle_subscription(VALUE pubsub);
