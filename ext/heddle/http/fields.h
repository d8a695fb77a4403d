#pragma once

/* The known field names. A perfect hash finds the id of a name, in upper or lower case. Uses no Ruby. */

#include "system.h"

/* Sorted by name. X(id, "name") */
#define HEDDLE_FIELDS(X)                                                                                              \
    X(ACCEPT, "accept")                                                                                               \
    X(ACCEPT_CHARSET, "accept-charset")                                                                               \
    X(ACCEPT_ENCODING, "accept-encoding")                                                                             \
    X(ACCEPT_LANGUAGE, "accept-language")                                                                             \
    X(AUTHORIZATION, "authorization")                                                                                 \
    X(CACHE_CONTROL, "cache-control")                                                                                 \
    X(CLIENT_IP, "client-ip")                                                                                         \
    X(CONNECTION, "connection")                                                                                       \
    X(CONTENT_ENCODING, "content-encoding")                                                                           \
    X(CONTENT_LENGTH, "content-length")                                                                               \
    X(CONTENT_TYPE, "content-type")                                                                                   \
    X(COOKIE, "cookie")                                                                                               \
    X(DATE, "date")                                                                                                   \
    X(DNT, "dnt")                                                                                                     \
    X(EXPECT, "expect")                                                                                               \
    X(FORWARDED, "forwarded")                                                                                         \
    X(HOST, "host")                                                                                                   \
    X(IF_MATCH, "if-match")                                                                                           \
    X(IF_MODIFIED_SINCE, "if-modified-since")                                                                         \
    X(IF_NONE_MATCH, "if-none-match")                                                                                 \
    X(IF_RANGE, "if-range")                                                                                           \
    X(IF_UNMODIFIED_SINCE, "if-unmodified-since")                                                                     \
    X(KEEP_ALIVE, "keep-alive")                                                                                       \
    X(LAST_EVENT_ID, "last-event-id")                                                                                 \
    X(MAX_FORWARDS, "max-forwards")                                                                                   \
    X(ORIGIN, "origin")                                                                                               \
    X(PRAGMA, "pragma")                                                                                               \
    X(PRIORITY, "priority")                                                                                           \
    X(PROXY_AUTHORIZATION, "proxy-authorization")                                                                     \
    X(RANGE, "range")                                                                                                 \
    X(REFERER, "referer")                                                                                             \
    X(SEC_CH_UA, "sec-ch-ua")                                                                                         \
    X(SEC_CH_UA_MOBILE, "sec-ch-ua-mobile")                                                                           \
    X(SEC_CH_UA_PLATFORM, "sec-ch-ua-platform")                                                                       \
    X(SEC_FETCH_DEST, "sec-fetch-dest")                                                                               \
    X(SEC_FETCH_MODE, "sec-fetch-mode")                                                                               \
    X(SEC_FETCH_SITE, "sec-fetch-site")                                                                               \
    X(SEC_FETCH_USER, "sec-fetch-user")                                                                               \
    X(SEC_GPC, "sec-gpc")                                                                                             \
    X(SEC_WEBSOCKET_EXTENSIONS, "sec-websocket-extensions")                                                           \
    X(SEC_WEBSOCKET_KEY, "sec-websocket-key")                                                                         \
    X(SEC_WEBSOCKET_PROTOCOL, "sec-websocket-protocol")                                                               \
    X(SEC_WEBSOCKET_VERSION, "sec-websocket-version")                                                                 \
    X(TE, "te")                                                                                                       \
    X(TRAILER, "trailer")                                                                                             \
    X(TRANSFER_ENCODING, "transfer-encoding")                                                                         \
    X(UPGRADE, "upgrade")                                                                                             \
    X(UPGRADE_INSECURE_REQUESTS, "upgrade-insecure-requests")                                                         \
    X(USER_AGENT, "user-agent")                                                                                       \
    X(VIA, "via")                                                                                                     \
    X(X_CSRF_TOKEN, "x-csrf-token")                                                                                   \
    X(X_FORWARDED_FOR, "x-forwarded-for")                                                                             \
    X(X_FORWARDED_HOST, "x-forwarded-host")                                                                           \
    X(X_FORWARDED_PORT, "x-forwarded-port")                                                                           \
    X(X_FORWARDED_PROTO, "x-forwarded-proto")                                                                         \
    X(X_FORWARDED_SCHEME, "x-forwarded-scheme")                                                                       \
    X(X_FORWARDED_SSL, "x-forwarded-ssl")                                                                             \
    X(X_REAL_IP, "x-real-ip")                                                                                         \
    X(X_REQUEST_ID, "x-request-id")                                                                                   \
    X(X_REQUEST_START, "x-request-start")                                                                             \
    X(X_REQUESTED_WITH, "x-requested-with")

typedef enum {
    HEDDLE_FIELD_OTHER,
#define HEDDLE_FIELD_ID(id, name) HEDDLE_FIELD_##id,
    HEDDLE_FIELDS(HEDDLE_FIELD_ID)
#undef HEDDLE_FIELD_ID
    HEDDLE_FIELD_COUNT,
} heddle_field_id;

/* Returns HEDDLE_FIELD_OTHER for an unknown name. */
heddle_field_id heddle_field_find(const char *name, size_t size);
/* Returns the name in lower case. */
const char *heddle_field_name(heddle_field_id id);
