#pragma once

#include <ruby.h>

void Init_heddle_datagram(VALUE net);
