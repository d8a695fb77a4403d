#pragma once

#include "selector/assert.h"

/*
 * Defines `bool function(from, to)`: may the state `to` follow `from`? The other arguments are the table. It has a row
 * for each state: [from] = the bits of the states that may follow.
 */
#define HEDDLE_TRANSITIONS(function, ...)                                                                              \
    static inline bool function(uint8_t from, uint8_t to)                                                              \
    {                                                                                                                  \
        static const uint8_t allowed[] = {__VA_ARGS__};                                                                \
        return allowed[from] >> to & 1;                                                                                \
    }
