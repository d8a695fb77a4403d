#pragma once

/*
 * An option, such as stream_bodies, that applies to all requests, to none, or to some paths and everything below them.
 */

#include "http/exchange.h"

typedef struct {
    bool all;
    unsigned count;
    char **prefixes; /* the paths to which the option applies */
} heddle_path_option;

/* Does the option apply to this request? */
bool heddle_path_option_applies(const heddle_path_option *option, const heddle_exchange *exchange);
/* Is the request's path one of the option's paths? A path below one of them does not count. */
bool heddle_path_option_has_path(const heddle_path_option *option, const heddle_exchange *exchange);
void heddle_path_option_free(heddle_path_option *option);
