#ifndef HEDDLE_H2_BLOCK_H
#define HEDDLE_H2_BLOCK_H

/* A header block on its way to a request or an answer: its fields are checked one by one, and then together. */

#include "http/controls.h"
#include "http/h2/session_state.h"

typedef enum {
    HEDDLE_H2_METHOD,
    HEDDLE_H2_SCHEME,
    HEDDLE_H2_AUTHORITY,
    HEDDLE_H2_PATH,
    HEDDLE_H2_PROTOCOL,
    HEDDLE_H2_STATUS, /* of an answer, which has no other */
    HEDDLE_H2_PSEUDO_FIELDS,
} heddle_h2_pseudo;

struct heddle_h2_block {
    const heddle_h2_limits *limits;
    heddle_bytes *bytes;   /* what slices are of */
    heddle_field *fields;
    uint32_t field_count, line_count, crumbs;
    uint64_t list_size;    /* as RFC 9113, 6.5.2 counts it */
    bool response;         /* of an answer; else of a request */
    bool trailers;         /* of a request's no field is kept */
    bool malformed, too_large, no_memory;
    bool has_pseudo[HEDDLE_H2_PSEUDO_FIELDS];
    heddle_slice pseudo[HEDDLE_H2_PSEUDO_FIELDS];
    heddle_controls controls;
    uint8_t urgency;
    bool incremental;
};

void heddle_h2_block_field(heddle_h2_block *block, const heddle_hpack_field *field);

typedef enum {
    HEDDLE_H2_ACCEPTED,
    HEDDLE_H2_REJECTED,   /* to be answered with the rejection's status */
    HEDDLE_H2_MALFORMED, /* a stream error */
} heddle_h2_block_result;

/* Makes a request of the fields. `ended`: no body follows. */
heddle_h2_block_result heddle_h2_block_judge(heddle_h2_block *block, bool ended, heddle_h2_request *request,
                                             heddle_rejection *rejection);

#endif
