#pragma once

/*
 * Heads of HTTP messages, as slices of the bytes from which they were parsed, and the parsers for heads and chunked
 * bodies of HTTP/1 (RFC 9112). heddle_request_head also holds the heads of requests over HTTP/2. Uses no Ruby.
 */

#include "http/rejection.h"

typedef struct {
    uint32_t start, size; /* `start` is an offset in the bytes that were parsed */
} heddle_slice;

typedef struct {
    heddle_slice name;  /* as sent */
    heddle_slice value; /* without white space around it */
    uint16_t id;        /* heddle_field_id; HEDDLE_FIELD_OTHER: an unknown name */
} heddle_field;

typedef struct {
    size_t request_line, header; /* bytes; `header`: all field lines with their line ends */
    unsigned header_count;
    uint64_t body;               /* bytes */
    uint64_t chunk_extension;    /* bytes of all chunk extensions of a body */
    uint64_t chunk_overhead;     /* bytes by which a body's chunk framing may exceed its data */
    bool keep_underscores;       /* keeps fields whose names contain `_` */
} heddle_http_limits;

typedef enum {
    HEDDLE_METHOD_OTHER,
    HEDDLE_GET, HEDDLE_HEAD, HEDDLE_POST, HEDDLE_PUT, HEDDLE_DELETE, HEDDLE_PATCH, HEDDLE_OPTIONS, HEDDLE_CONNECT,
    HEDDLE_TRACE,
} heddle_method;

enum {
    HEDDLE_NO_BODY = -1,
    HEDDLE_CHUNKED_BODY = -2,
};

typedef struct {
    heddle_slice method, target; /* as sent */
    /*
     * query: the part after the first `?`, empty if there is none; path: empty only for `OPTIONS http://host`, where it
     * means `*`
     */
    heddle_slice path, query;
    heddle_slice authority;      /* from the target if it has one, else from Host; size 0: empty or none */
    heddle_slice protocol;       /* the protocol of an extended CONNECT (RFC 8441); size 0: any other request */
    heddle_slice host, port;     /* the parts of the authority; an IPv6 host keeps its brackets */
    heddle_method method_id;
    uint8_t minor;               /* 0 for HTTP/1.0; 1 for HTTP/1.1, later minor versions, and HTTP/2 */
    bool has_host;               /* authority, host and port are valid; each may be empty */
    bool keep_alive;             /* the client wants to keep the connection open */
    bool expects_continue;       /* Expect: 100-continue, and not HTTP/1.0 */
    bool upgrade;                /* Upgrade is valid: Connection names it, and this is not HTTP/1.0 */
    bool dropped;                /* a field was dropped, because its name has an underscore */
    int64_t content_length;      /* bytes of the body; or HEDDLE_NO_BODY, HEDDLE_CHUNKED_BODY */
    uint32_t size;               /* bytes of the head, including an empty line before the request line */
    uint32_t field_bytes;        /* bytes of the field lines */
    uint16_t line_count;         /* number of field lines, including dropped ones */
    uint16_t field_count;
    uint16_t field_room;         /* room in `fields`; a parser's caller sets it to at least limits.header_count */
    heddle_field *fields;
} heddle_request_head;

/*
 * Parses the head at the start of `bytes`. `seen`: the number of bytes that an earlier call for the same head has read.
 * Returns the head's size, 0 if the head is incomplete and valid so far, or -1 if it is rejected.
 */
int heddle_request_head_parse(heddle_request_head *head, const char *bytes, size_t size, size_t seen,
                              const heddle_http_limits *limits, heddle_rejection *rejection);

typedef struct {
    heddle_slice reason;
    int status;
    uint8_t minor;
    bool keep_alive;        /* the server allows the client to keep the connection open */
    bool upgrade;           /* another protocol follows: after 101, or a successful CONNECT */
    bool until_close;       /* the end of the connection ends the content */
    /* a value has folded lines: each CR LF in it, together with the white space around it, stands for one space */
    bool folded;
    int64_t content_length; /* bytes of the content that follows; or HEDDLE_NO_BODY, HEDDLE_CHUNKED_BODY */
    uint32_t size, field_bytes;
    uint16_t line_count, field_count, field_room;
    heddle_field *fields;
} heddle_response_head;

/*
 * Parses the head of a final or interim (1xx) response to a request of this method. Returns the same values as
 * heddle_request_head_parse.
 */
int heddle_response_head_parse(heddle_response_head *head, heddle_method request, const char *bytes, size_t size,
                               size_t seen, const heddle_http_limits *limits, heddle_rejection *rejection);

/* -- chunked bodies (RFC 9112, 7.1) ------------------------------------------------------------------------------ */

typedef struct {
    uint8_t state;
    uint8_t digits;
    bool done;              /* the whole body was decoded, including its trailers */
    bool failed;            /* the body is malformed, so its end is unknown */
    uint32_t header_bytes;  /* bytes of the head's fields and of the trailers, which share one limit */
    uint32_t header_lines;
    uint64_t remaining;     /* bytes of this chunk's data that are still to come */
    uint64_t data, framing, extensions; /* how many bytes of each were decoded so far */
} heddle_chunked;

void heddle_chunked_start(heddle_chunked *chunked, uint32_t header_bytes, uint32_t header_lines);

/*
 * Decodes bytes of a chunked body, up to its end. Moves the data to `output`, which has room for `size` bytes and may
 * be `bytes` itself, and sets `*length` to the size of the data. Returns the number of bytes it has used, or -1 if the
 * body is malformed. Once it has returned -1, all further calls for the same body return -1.
 */
int64_t heddle_chunked_decode(heddle_chunked *chunked, const char *bytes, size_t size, char *output, size_t *length,
                              const heddle_http_limits *limits, heddle_rejection *rejection);
