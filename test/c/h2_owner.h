#ifndef HEDDLE_TEST_H2_OWNER_H
#define HEDDLE_TEST_H2_OWNER_H

/* A session's owner for tests: it notes what it is told, and answers each complete request, if it is to. */

#include "check.h"
#include "http/fields.h"
#include "http/h2/hpack.h"
#include "http/h2/session_state.h"

enum {
    OWNER_STREAMS = 256,
    OWNER_BYTES = 1 << 20,
};

#define SECOND INT64_C(1000000000)
#define OWNER_BODY "12345678"

typedef struct {
    heddle_h2_session *session;
    heddle_h2_limits limits;
    heddle_h2_workspace workspace;
    bool answers, consumes;     /* complete requests at once; bodies */
    bool keeps;                 /* streams are not released when they are complete */
    heddle_h2_stream *streams[OWNER_STREAMS]; /* by (id - 1) / 2, held ones */
    heddle_method method;       /* of the last request */
    bool ended;
    char request[4096];         /* its fields as lines */
    heddle_request_head head;
    char target[256];
    int rejection;
    unsigned requests, ends, resets, completions, windows, refused;
    size_t data;
    heddle_h2_error error;      /* of the last reset */
    int64_t now;
    uint8_t out[OWNER_BYTES];   /* what was pulled and not looked at */
    size_t out_size;
} test_owner;

static test_owner *owner_of(heddle_h2_session *session)
{
    return session->owner;
}

static heddle_h2_stream **owner_place(test_owner *owner, const heddle_h2_stream *stream)
{
    return &owner->streams[(stream->id / 2) % OWNER_STREAMS];
}

static void owner_answer(test_owner *owner, heddle_h2_stream *stream)
{
    static const heddle_h2_field fields[] = {{"content-type", "text/plain", 12, 10}};
    bool head = stream->owner != NULL;
    heddle_h2_write_head(owner->session, stream, 200, fields, 1, head);
    if (head)
        return;
    heddle_h2_write(owner->session, stream, OWNER_BODY, sizeof(OWNER_BODY) - 1);
    heddle_h2_finish(owner->session, stream);
}

static void owner_note(test_owner *owner, const heddle_h2_request *request)
{
    char *to = owner->request;
    for (unsigned i = 0; i < request->head.field_count; i++) {
        const heddle_field *field = &request->head.fields[i];
        to += snprintf(to, (size_t)(owner->request + sizeof(owner->request) - to), "%.*s: %.*s\n",
                       (int)field->name.size, request->bytes + field->name.start, (int)field->value.size,
                       request->bytes + field->value.start);
        CHECK(to < owner->request + sizeof(owner->request));
    }
    *to = '\0';
    snprintf(owner->target, sizeof(owner->target), "%.*s", (int)request->head.target.size,
             request->bytes + request->head.target.start);
    owner->head = request->head;
    owner->method = request->head.method_id;
    owner->ended = request->ended;
}

static void owner_request(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_request *request)
{
    test_owner *owner = owner_of(session);
    owner->requests++;
    owner_note(owner, request);
    *owner_place(owner, stream) = stream;
    stream->owner = request->head.method_id == HEDDLE_HEAD ? owner : NULL;
    if (request->ended && owner->answers)
        owner_answer(owner, stream);
}

static void owner_rejection(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_rejection *rejection,
                            heddle_method method)
{
    test_owner *owner = owner_of(session);
    owner->method = method;
    owner->refused++;
    owner->rejection = rejection->status;
    heddle_h2_write_head(session, stream, rejection->status, NULL, 0, true);
}

static void owner_data(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size)
{
    test_owner *owner = owner_of(session);
    volatile char last = bytes[size - 1]; /* a byte too many would be seen */
    (void)last;
    owner->data += size;
    if (owner->consumes)
        heddle_h2_consume(session, stream, size);
}

static void owner_end(heddle_h2_session *session, heddle_h2_stream *stream)
{
    test_owner *owner = owner_of(session);
    owner->ends++;
    if (owner->answers)
        owner_answer(owner, stream);
}

static void owner_gone(test_owner *owner, heddle_h2_stream *stream)
{
    if (owner->keeps)
        return;
    *owner_place(owner, stream) = NULL;
    heddle_h2_release(owner->session, stream);
}

static void owner_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    test_owner *owner = owner_of(session);
    owner->resets++;
    owner->error = error;
    owner_gone(owner, stream);
}

static void owner_window(heddle_h2_session *session, heddle_h2_stream *stream)
{
    (void)stream;
    owner_of(session)->windows++;
}

static void owner_complete(heddle_h2_session *session, heddle_h2_stream *stream)
{
    owner_of(session)->completions++;
    owner_gone(owner_of(session), stream);
}

static const heddle_h2_operations owner_operations = {
    owner_request, owner_rejection, owner_data, owner_end, owner_reset, owner_window, owner_complete,
};

/* Limits may be changed before. */
static test_owner *owner_new(void)
{
    test_owner *owner = calloc(1, sizeof(*owner));
    CHECK(owner);
    owner->limits = heddle_h2_default_limits();
    owner->answers = owner->consumes = true;
    owner->now = SECOND;
    return owner;
}

static void owner_connect(test_owner *owner)
{
    owner->session = heddle_h2_session_new(&owner_operations, &owner->limits, &owner->workspace, owner, owner->now, false);
    CHECK(owner->session);
}

static void owner_free(test_owner *owner)
{
    heddle_h2_session_free(owner->session);
    heddle_h2_workspace_free(&owner->workspace);
    free(owner);
}

/* A copy of exactly the size, so that reading behind it is seen. */
static void owner_feed(test_owner *owner, const void *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    for (size_t at = 0; at < size;) {
        size_t used = heddle_h2_feed(owner->session, owner->now, copy + at, size - at);
        at += used;
        if (used == 0)
            break;
    }
    free(copy);
}

static void owner_pull(test_owner *owner)
{
    for (;;) {
        CHECK(sizeof(owner->out) - owner->out_size >= HEDDLE_H2_PULL_ROOM);
        size_t size = heddle_h2_pull(owner->session, owner->now, owner->out + owner->out_size,
                                     sizeof(owner->out) - owner->out_size);
        owner->out_size += size;
        if (size == 0)
            return;
    }
}

/* Takes the first frame of what was pulled. False: there is none. */
static bool owner_next(test_owner *owner, heddle_h2_frame *frame, uint8_t *payload)
{
    heddle_h2_reader reader = {0};
    heddle_h2_piece piece;
    const uint8_t *at = owner->out, *end = owner->out + owner->out_size;
    if (heddle_h2_read(&reader, &at, end, &piece) != HEDDLE_H2_BEGIN)
        return false;
    CHECK(reader.frame.length <= HEDDLE_H2_FRAME_SIZE);
    CHECK_EQUAL(HEDDLE_H2_LAST_PIECE, heddle_h2_read(&reader, &at, end, &piece));
    *frame = reader.frame;
    if (piece.size > 0)
        memcpy(payload, piece.bytes, piece.size);
    owner->out_size = (size_t)(end - at);
    memmove(owner->out, at, owner->out_size);
    return true;
}

#endif
