#pragma once

/*
 * A header block while it is decoded. Each field is first checked alone. Then heddle_h2_request_judge checks all fields
 * of a request together; session_client.c does this for a response.
 */

#include "http/control_fields.h"
#include "http/fields.h"
#include "http/h2/session_state.h"

typedef enum {
    HEDDLE_H2_METHOD,
    HEDDLE_H2_SCHEME,
    HEDDLE_H2_AUTHORITY,
    HEDDLE_H2_PATH,
    HEDDLE_H2_PROTOCOL,
    HEDDLE_H2_STATUS, /* the only pseudo-header field of a response */
    HEDDLE_H2_PSEUDO_FIELDS,
} heddle_h2_pseudo;

struct heddle_h2_block {
    const heddle_h2_limits *limits;
    heddle_bytes *bytes;   /* the bytes that the slices in `fields` and `pseudo` refer to */
    heddle_field *fields;
    /*
     * field_count: the entries in `fields`. line_count: all received fields except pseudo-header fields, including
     * those that were not added to `fields`.
     */
    uint32_t field_count, line_count;
    uint32_t crumbs;       /* number of cookie fields (RFC 9113, 8.2.3) */
    uint64_t list_size;    /* the size of all fields, as counted by RFC 9113, 6.5.2 */
    bool response;         /* the block of a response; false: of a request */
    bool trailers;         /* the block has trailers; a request's trailers are only checked, a response's are kept */
    const char *malformed; /* what is wrong with the first malformed field, or with the request; NULL: nothing */
    bool too_large, no_memory;
    bool has_pseudo[HEDDLE_H2_PSEUDO_FIELDS];
    heddle_slice pseudo[HEDDLE_H2_PSEUDO_FIELDS];
    heddle_control_fields controls;
    uint8_t urgency;
    bool incremental;
};

/* Is this a field about an HTTP/1.1 connection, which HTTP/2 forbids (RFC 9113, 8.2.2)? `id`: the id of its name. */
bool heddle_h2_is_about_connection(heddle_field_id id, const char *name, size_t size);

/*
 * Checks the next field of the block, and adds it to `fields` or `pseudo`. If the field is invalid or does not fit,
 * sets `malformed`, `too_large` or `no_memory`. Two kinds of fields are checked, but not added: trailers of a request,
 * and, unless `keep_underscores` is set, fields whose names contain an underscore.
 */
void heddle_h2_block_field(heddle_h2_block *block, const heddle_hpack_field *field);

typedef enum {
    HEDDLE_H2_ACCEPTED,
    HEDDLE_H2_REJECTED,   /* the request gets a response with the rejection's status */
    HEDDLE_H2_MALFORMED, /* a stream error */
} heddle_h2_block_result;

/*
 * Makes a request from the fields. If the request is malformed, sets `malformed`. If it is rejected, because it exceeds
 * a limit or has an unknown expectation, fills `rejection`. The result is valid only if `no_memory` is not set.
 * `ended`: no body follows.
 */
heddle_h2_block_result heddle_h2_request_judge(heddle_h2_block *block, bool ended, heddle_h2_request *request,
                                               heddle_rejection *rejection);
