#ifndef HEDDLE_NET_H
#define HEDDLE_NET_H

#include <ruby.h>

void Init_heddle_net(VALUE heddle);

#endif
