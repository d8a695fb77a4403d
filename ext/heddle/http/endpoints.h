#pragma once

/*
 * The sums of the time accounts by endpoint, that is by label (request_label.h): of the first endpoints that have a
 * slow request, and of all others together. Bounded, because clients choose the paths. Uses no Ruby.
 */

#include "http/request_label.h"
#include "scheduler/account.h"

enum {
    HEDDLE_ENDPOINTS = 50, /* the last one stands for all others */
};

/* A faster request, ns, without its time in the queue, counts for no endpoint: finding its label costs too much. */
#define HEDDLE_ENDPOINT_LEAST INT64_C(1000000)

typedef struct {
    uint32_t hash;
    char label[HEDDLE_REQUEST_LABEL];
    uint64_t spent[HEDDLE_SPENT_PARTS + 1]; /* ns; the last one is what the parts don't explain */
} heddle_endpoint;

typedef struct {
    unsigned count;
    heddle_endpoint list[HEDDLE_ENDPOINTS];
} heddle_endpoints;

void heddle_endpoints_count(heddle_endpoints *endpoints, const char *method, size_t method_size, const char *target,
                            size_t target_size, const int64_t parts[HEDDLE_SPENT_PARTS], int64_t other);
