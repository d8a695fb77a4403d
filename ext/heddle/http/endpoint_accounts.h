#pragma once

/*
 * The sums of the time accounts by endpoint, that is by label (request_label.h). The first endpoints that have a slow
 * request get a sum of their own. All others share one sum, because clients choose the paths and the memory must be
 * bounded. Uses no Ruby.
 */

#include "http/request_label.h"
#include "scheduler/account.h"

enum {
    HEDDLE_ENDPOINTS = 50, /* the last one stands for all others */
};

/* ns. Requests that are served faster than this count for no endpoint, because finding their label costs too much. */
#define HEDDLE_ENDPOINT_LEAST INT64_C(1000000)

typedef struct {
    uint32_t hash;
    char label[HEDDLE_REQUEST_LABEL];
    uint64_t spent[HEDDLE_SPENT_PARTS + 1]; /* ns; the last element is the time that no part explains */
} heddle_endpoint;

typedef struct {
    unsigned count;
    heddle_endpoint list[HEDDLE_ENDPOINTS];
} heddle_endpoints;

void heddle_endpoints_count(heddle_endpoints *endpoints, const char *method, size_t method_size, const char *target,
                            size_t target_size, const int64_t parts[HEDDLE_SPENT_PARTS], int64_t other);
