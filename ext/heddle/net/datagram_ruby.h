#ifndef HEDDLE_DATAGRAM_RUBY_H
#define HEDDLE_DATAGRAM_RUBY_H

#include <ruby.h>

void Init_heddle_datagram(VALUE net);

#endif
