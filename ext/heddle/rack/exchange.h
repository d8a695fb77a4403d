#ifndef HEDDLE_RACK_EXCHANGE_H
#define HEDDLE_RACK_EXCHANGE_H

#include <ruby.h>

/* Heddle::Rack.env and .respond */
void Init_heddle_rack_exchange(VALUE rack);

#endif
