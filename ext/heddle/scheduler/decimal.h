#pragma once

#include "system.h"

/*
 * Parses the decimal number at the start of `text`, a line that the kernel has written. Skips leading spaces. Returns 0
 * if there is no number. Does not use strtoll or fscanf: glibc 2.38 has given them new symbol names, so a library that
 * was built with it and calls them would not load with the older glibc of Debian 12.
 */
static inline int64_t heddle_parse_decimal(const char *text)
{
    int64_t number = 0;
    while (*text == ' ')
        text++;
    for (; *text >= '0' && *text <= '9' && number < INT64_MAX / 10; text++)
        number = number * 10 + (*text - '0');
    return number;
}
