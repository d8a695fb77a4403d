#pragma once

/* Heddle::Net::SharedText: a string that one process replaces, and that the processes which it forks read. */

#include <ruby.h>

void Init_heddle_shared_text(VALUE net);
