#pragma once

#include "system.h"

/* The decimal number that a line of the kernel's begins with, after spaces; 0 where there is none. glibc 2.38 gives
 * strtoll and fscanf new names, and a library that calls them would not load with the older glibc of Debian 12. */
static inline int64_t heddle_parse_decimal(const char *text)
{
    int64_t number = 0;
    while (*text == ' ')
        text++;
    for (; *text >= '0' && *text <= '9' && number < INT64_MAX / 10; text++)
        number = number * 10 + (*text - '0');
    return number;
}
