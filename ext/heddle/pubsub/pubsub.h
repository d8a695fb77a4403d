#ifndef HEDDLE_PUBSUB_PUBSUB_H
#define HEDDLE_PUBSUB_PUBSUB_H

#include <ruby.h>

void Init_heddle_pubsub(VALUE heddle);
void Init_heddle_subscription(VALUE pubsub);

#endif
