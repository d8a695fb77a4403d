#pragma once

#include "net/scoreboard.h"

#include <ruby.h>

/* Returns the scoreboard of the object. Raises IOError if it is closed. */
heddle_scoreboard *heddle_scoreboard_of(VALUE object);

void Init_heddle_scoreboard(VALUE net);
void Init_heddle_pool_shares(VALUE scoreboard_class);
