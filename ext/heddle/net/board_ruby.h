#ifndef HEDDLE_BOARD_RUBY_H
#define HEDDLE_BOARD_RUBY_H

#include "net/board.h"

#include <ruby.h>

/* Raises when it is closed. */
heddle_board *heddle_board_of(VALUE object);

void Init_heddle_board(VALUE net);

#endif
