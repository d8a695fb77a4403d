#pragma once

/*
 * The metric http.server.request.duration of OpenTelemetry's semantic conventions: a histogram for each combination of
 * method, scheme, version of HTTP and status. An observation costs a few instructions and no memory.
 */

#include "http/message.h"

enum {
    HEDDLE_DURATION_SERIES = 128, /* combinations with a histogram of their own; a power of two */
    HEDDLE_DURATION_BOUNDS = 14,
};

/* The upper bounds that the conventions recommend, in ms. */
static const uint16_t heddle_duration_bounds[HEDDLE_DURATION_BOUNDS] = {5,   10,  25,   50,   75,   100,  250,
                                                                        500, 750, 1000, 2500, 5000, 7500, 10000};

typedef struct {
    uint16_t status;                             /* 0: unused; also 0 in the last series, which counts any status */
    uint8_t method;                              /* heddle_method */
    uint8_t version;                             /* the version of HTTP, times 10 */
    bool secure;                                 /* over TLS */
    uint64_t counts[HEDDLE_DURATION_BOUNDS + 1]; /* the last bucket has no bound */
    uint64_t sum;                                /* ns */
} heddle_duration_series;

typedef struct {
    /* the last series counts all combinations that have no series of their own */
    heddle_duration_series series[HEDDLE_DURATION_SERIES + 1];
} heddle_otel_durations;

static inline heddle_duration_series *heddle_duration_series_of(heddle_otel_durations *durations, heddle_method method,
                                                                bool secure, uint8_t version, int status)
{
    uint32_t hash = (uint32_t)status << 16 | (uint32_t)version << 8 | (uint32_t)method << 1 | secure;
    hash = hash * UINT32_C(2654435769) >> 16;
    for (unsigned i = 0; i < HEDDLE_DURATION_SERIES; i++) {
        heddle_duration_series *one = &durations->series[(hash + i) % HEDDLE_DURATION_SERIES];
        if (one->status == status && one->method == method && one->secure == secure && one->version == version)
            return one;
        if (one->status == 0) {
            one->status = (uint16_t)status;
            one->method = (uint8_t)method;
            one->version = version;
            one->secure = secure;
            return one;
        }
    }
    return &durations->series[HEDDLE_DURATION_SERIES];
}

static inline void heddle_otel_durations_add(heddle_otel_durations *durations, heddle_method method, bool secure,
                                             uint8_t version, int status, int64_t ns)
{
    heddle_duration_series *series = heddle_duration_series_of(durations, method, secure, version, status);
    uint64_t taken = ns > 0 ? (uint64_t)ns : 0;
    unsigned bucket = 0;
    while (bucket < HEDDLE_DURATION_BOUNDS && taken > heddle_duration_bounds[bucket] * UINT64_C(1000000))
        bucket++;
    series->counts[bucket]++;
    series->sum += taken;
}
