#pragma once

#include "selector/assert.h"

/*
 * Defines `bool function(from, to)`: may a state machine go from the state `from` to the state `to`? The other
 * arguments are a table with one row for each state: [from] = a mask with the bit 1 << `to` for each allowed `to`.
 */
#define HEDDLE_TRANSITIONS(function, ...)                                                                              \
    static inline bool function(uint8_t from, uint8_t to)                                                              \
    {                                                                                                                  \
        static const uint8_t allowed[] = {__VA_ARGS__};                                                                \
        return allowed[from] >> to & 1;                                                                                \
    }
