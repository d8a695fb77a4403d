#pragma once

/* The known request methods (RFC 9110, 9.3; RFC 5789). Uses no Ruby. */

#include "http/message.h"

/* Returns the name of a known method. */
static inline const char *heddle_method_name(heddle_method method)
{
    static const char *const names[] = {
        [HEDDLE_GET] = "GET", [HEDDLE_HEAD] = "HEAD", [HEDDLE_POST] = "POST", [HEDDLE_PUT] = "PUT",
        [HEDDLE_DELETE] = "DELETE", [HEDDLE_PATCH] = "PATCH", [HEDDLE_OPTIONS] = "OPTIONS",
        [HEDDLE_CONNECT] = "CONNECT", [HEDDLE_TRACE] = "TRACE",
    };
    return names[method];
}

static inline heddle_method heddle_method_find(const char *name, size_t size)
{
#define IS(method) (memcmp(name, method, sizeof(method) - 1) == 0)
    switch (size) {
    case 3:
        return IS("GET") ? HEDDLE_GET : IS("PUT") ? HEDDLE_PUT : HEDDLE_METHOD_OTHER;
    case 4:
        return IS("POST") ? HEDDLE_POST : IS("HEAD") ? HEDDLE_HEAD : HEDDLE_METHOD_OTHER;
    case 5:
        return IS("PATCH") ? HEDDLE_PATCH : IS("TRACE") ? HEDDLE_TRACE : HEDDLE_METHOD_OTHER;
    case 6:
        return IS("DELETE") ? HEDDLE_DELETE : HEDDLE_METHOD_OTHER;
    case 7:
        return IS("OPTIONS") ? HEDDLE_OPTIONS : IS("CONNECT") ? HEDDLE_CONNECT : HEDDLE_METHOD_OTHER;
    default:
        return HEDDLE_METHOD_OTHER;
    }
#undef IS
}
