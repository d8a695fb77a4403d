#pragma once

/*
 * Sums the time accounts of requests (scheduler/account.h: how long a request waited, computed, queried …) by endpoint.
 * An endpoint is the request's label: its method, and its path without ids (request_label.h). The first endpoints get
 * their own sums. All others share one entry, because clients choose the paths and the memory must be bounded. Uses no
 * Ruby.
 */

#include "http/request_label.h"
#include "scheduler/account.h"

enum {
    HEDDLE_ENDPOINTS = 50, /* entries; the last one sums all other endpoints */
};

/*
 * In ns. A request that took less than this, not counting its time in the queue, is not summed: computing its label
 * would cost too much.
 */
#define HEDDLE_ENDPOINT_LEAST INT64_C(1000000)

typedef struct {
    uint32_t hash;
    char label[HEDDLE_REQUEST_LABEL];
    uint64_t spent[HEDDLE_SPENT_PARTS + 1]; /* ns for each part; the last element: time that belongs to no part */
} heddle_endpoint;

typedef struct {
    unsigned count;
    heddle_endpoint list[HEDDLE_ENDPOINTS];
} heddle_endpoints;

/* Adds the time account of one request, in ns. `other`: the time that belongs to no part. */
void heddle_endpoints_count(heddle_endpoints *endpoints, const char *method, size_t method_size, const char *target,
                            size_t target_size, const int64_t parts[HEDDLE_SPENT_PARTS], int64_t other);
