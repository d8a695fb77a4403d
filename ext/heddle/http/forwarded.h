#pragma once

/*
 * Fields in which a proxy describes its client's connection: Forwarded (RFC 7239) and its predecessors. Uses no Ruby.
 */

#include "http/fields.h"
#include "http/message.h"
#include "net/address.h"

typedef enum {
    HEDDLE_SCHEME_UNKNOWN,
    HEDDLE_SCHEME_HTTP,
    HEDDLE_SCHEME_HTTPS,
} heddle_scheme;

/* The fields that only a trusted proxy may set: one bit for each field. */
#define HEDDLE_FORWARDED_FIELDS                                                                                       \
    (UINT64_C(1) << HEDDLE_FIELD_FORWARDED | UINT64_C(1) << HEDDLE_FIELD_X_FORWARDED_FOR |                            \
     UINT64_C(1) << HEDDLE_FIELD_X_FORWARDED_HOST | UINT64_C(1) << HEDDLE_FIELD_X_FORWARDED_PORT |                    \
     UINT64_C(1) << HEDDLE_FIELD_X_FORWARDED_PROTO | UINT64_C(1) << HEDDLE_FIELD_X_FORWARDED_SCHEME |                 \
     UINT64_C(1) << HEDDLE_FIELD_X_FORWARDED_SSL | UINT64_C(1) << HEDDLE_FIELD_X_REAL_IP |                            \
     UINT64_C(1) << HEDDLE_FIELD_CLIENT_IP)

/*
 * Returns the scheme that the client used, as Rack determines it: https if X-Forwarded-Ssl is `on`; else the last
 * `proto` in Forwarded, if it is http or https; else the last http or https in X-Forwarded-Proto; else the last http or
 * https in X-Forwarded-Scheme; else HEDDLE_SCHEME_UNKNOWN. Takes wss for https and ws for http. Ignores a malformed
 * Forwarded.
 */
heddle_scheme heddle_forwarded_scheme(const heddle_request_head *head, const char *bytes);

/* Is this the address of a trusted proxy? */
typedef bool heddle_trusts(const void *trusted, const heddle_address *address);

/*
 * Finds the address of the client behind trusted proxies, as Rack determines it. Searches the addresses in Forwarded.
 * If that field has none or is malformed, searches X-Forwarded-For. Chooses the last address that is not a trusted
 * proxy's, or the first address if all belong to trusted proxies. Returns false if there is no address, or if the
 * chosen address can't be parsed.
 */
bool heddle_forwarded_client(const heddle_request_head *head, const char *bytes, heddle_trusts *trusts,
                             const void *trusted, heddle_address *client);

/*
 * Returns when the first proxy received the request, in ns since 1970: the earliest time in the X-Request-Start fields.
 * Returns 0 if no such field is valid. Heroku sends milliseconds; nginx sends `t=` and seconds with a fraction; other
 * proxies send microseconds. The number of digits shows the unit.
 */
int64_t heddle_forwarded_start(const heddle_request_head *head, const char *bytes);

/* Does the head have a field that a proxy sets: Via, X-Forwarded-* or one of HEDDLE_FORWARDED_FIELDS? */
bool heddle_forwarded_any(const heddle_request_head *head, const char *bytes);
/*
 * Returns the time in ns from X-Request-Start until the request's first byte was received. `began`: the time of that
 * byte (CLOCK_MONOTONIC, ns). Returns 0 if the field is missing or invalid. Also returns 0 if the result would be
 * negative, or 600 s or more: then the clock of one of the two machines must be wrong.
 */
int64_t heddle_forwarded_delay(const heddle_request_head *head, const char *bytes, int64_t began);
