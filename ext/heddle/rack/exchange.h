#pragma once

#include <ruby.h>

/* Heddle::Rack.env and .respond */
void Init_heddle_rack_exchange(VALUE rack);
