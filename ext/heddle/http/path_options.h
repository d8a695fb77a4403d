#pragma once

/* An option that applies to all requests, to none, or to some paths and below, such as stream_bodies. */

#include "http/exchange.h"

typedef struct {
    bool all;
    unsigned count;
    char **prefixes; /* of paths */
} heddle_path_option;

/* Does the option count for this request? */
bool heddle_path_option_counts(const heddle_path_option *option, const heddle_exchange *exchange);
/* Is the request's path one of the option's, and not only below it? */
bool heddle_path_option_names(const heddle_path_option *option, const heddle_exchange *exchange);
void heddle_path_option_free(heddle_path_option *option);
