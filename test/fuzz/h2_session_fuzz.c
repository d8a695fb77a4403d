/* sources: http/h2/headers_writer.c http/h2/block_fields.c http/h2/request_head.c http/h2/session_client.c
   http/h2/drain.c http/h2/flow_control.c http/h2/frame.c http/h2/limits.c http/h2/hpack_decoder.c
   http/h2/hpack_encoder.c http/h2/hpack_table.c http/h2/huffman.c http/h2/output.c http/h2/priority.c
   http/h2/header_blocks.c http/h2/session.c http/h2/settings.c http/h2/streams.c http/h2/tables.c http/text.c
   http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c http/authority.c
   http/rejection.c http/request_limits.c */

/*
 * The server's side of HTTP/2: any bytes after the preface, however they are cut, give the same requests and the same
 * output; the output is whole frames within the client's windows; nothing is kept of a session that is freed, and what
 * a session keeps is bounded. The owner answers, resets, lends or waits, as the streams' numbers say.
 */

#include "fuzz.h"
#include "http/h2/session_state.h"

enum {
    ROOM = 1 << 17,
    MOST_OUTPUT = 1 << 20,
    MOST_STREAMS = 8,
};

static const char body[40000];
static heddle_h2_limits limits;
static heddle_h2_workspace workspace;
static int loans; /* that have not ended */

typedef struct {
    char *output;
    size_t output_size;
    uint64_t calls; /* a hash of what the owner was told */
    unsigned held;
} outcome;

static outcome *result;

static void tell(uint64_t what, const void *bytes, size_t size)
{
    result->calls = (result->calls ^ what) * UINT64_C(1099511628211);
    for (size_t i = 0; i < size; i++)
        result->calls = (result->calls ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
}

static void release_stream(heddle_h2_session *session, heddle_h2_stream *stream)
{
    result->held--;
    heddle_h2_release(session, stream);
}

static void end_loan(void *loan)
{
    loans--;
}

static void answer(heddle_h2_session *session, heddle_h2_stream *stream)
{
    heddle_h2_field fields[] = {{"Content-Type", "text/plain", 12, 10}, {"connection", "close", 10, 5}};
    uint32_t id = stream->id;
    switch (id / 2 % 5) {
    case 0:
        heddle_h2_write_head(session, stream, 204, fields, 2, true);
        break;
    case 1:
        heddle_h2_reset(session, stream, HEDDLE_H2_CANCEL);
        release_stream(session, stream);
        break;
    case 2:
        heddle_h2_write_head(session, stream, 103, fields, 1, false);
        heddle_h2_write_head(session, stream, 200, fields, 2, false);
        loans += heddle_h2_lend(session, stream, body, sizeof(body), end_loan, NULL);
        heddle_h2_finish(session, stream);
        break;
    case 3:
        heddle_h2_write_head(session, stream, 200, fields, 2, false);
        heddle_h2_write(session, stream, body, 100);
        heddle_h2_finish(session, stream);
        break;
    default: /* never */
        break;
    }
}

static void check_request(const heddle_h2_request *request)
{
    const heddle_request_head *head = &request->head;
    fuzz_inside(head->method, request->size);
    fuzz_inside(head->target, request->size);
    fuzz_inside(head->path, request->size);
    fuzz_inside(head->query, request->size);
    fuzz_inside(head->host, request->size);
    fuzz_inside(head->port, request->size);
    fuzz_inside(head->protocol, request->size);
    PROMISE(fuzz_is_token(request->bytes + head->method.start, head->method.size));
    PROMISE(head->host.size > 0 && head->target.size > 0);
    PROMISE(head->field_count <= limits.header_count + limits.crumb_count + 1);
    unsigned hosts = 0, cookies = 0;
    for (unsigned i = 0; i < head->field_count; i++) {
        const heddle_field *field = &head->fields[i];
        fuzz_inside(field->name, request->size);
        fuzz_inside(field->value, request->size);
        const char *name = request->bytes + field->name.start, *value = request->bytes + field->value.start;
        PROMISE(fuzz_is_token(name, field->name.size) && !memchr(name, '_', field->name.size));
        for (uint32_t at = 0; at < field->name.size; at++)
            PROMISE(name[at] < 'A' || name[at] > 'Z');
        for (uint32_t at = 0; at < field->value.size; at++)
            PROMISE((uint8_t)value[at] >= 0x20 || value[at] == '\t');
        hosts += field->name.size == 4 && memcmp(name, "host", 4) == 0;
        cookies += field->name.size == 6 && memcmp(name, "cookie", 6) == 0;
        PROMISE(field->name.size != 10 || memcmp(name, "connection", 10) != 0);
    }
    PROMISE(hosts == 1 && cookies <= 1);
}

static void on_request(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_request *request)
{
    check_request(request);
    result->held++;
    tell(1, request->bytes, request->size);
    if (request->ended)
        answer(session, stream);
}

static void on_rejection(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_rejection *rejection,
                         heddle_method method)
{
    result->held++;
    tell(2, &rejection->status, sizeof(rejection->status));
    tell(2, &method, sizeof(method));
    heddle_h2_write_head(session, stream, rejection->status, NULL, 0, true);
}

/* Pieces are cut as the input is, so that they are not told. */
static void on_data(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size)
{
    PROMISE(size > 0);
    free(fuzz_copy(bytes, size));
    if (stream->id % 4 == 1)
        heddle_h2_consume(session, stream, size);
}

static void on_end(heddle_h2_session *session, heddle_h2_stream *stream)
{
    tell(4, NULL, 0);
    answer(session, stream);
}

static void on_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    tell(5, &error, sizeof(error));
    release_stream(session, stream);
}

static void on_window(heddle_h2_session *session, heddle_h2_stream *stream)
{
    (void)session;
    (void)stream;
}

static void on_complete(heddle_h2_session *session, heddle_h2_stream *stream)
{
    tell(6, NULL, 0);
    release_stream(session, stream);
}

static void on_malformed(heddle_h2_session *session, const heddle_h2_stream *stream, heddle_h2_error error)
{
    PROMISE(session->reason && (!stream || stream->held));
    (void)error;
}

static const heddle_h2_operations operations = {
    .on_request = on_request,
    .on_rejection = on_rejection,
    .on_data = on_data,
    .on_end = on_end,
    .on_reset = on_reset,
    .on_window = on_window,
    .on_complete = on_complete,
    .on_malformed = on_malformed,
};

static void pull(heddle_h2_session *session, int64_t now)
{
    size_t size;
    while ((size = heddle_h2_pull(session, now, result->output + result->output_size, ROOM)) > 0) {
        result->output_size += size;
        PROMISE(result->output_size < MOST_OUTPUT);
    }
}

static void check_bounds(const heddle_h2_session *session)
{
    PROMISE(session->stream_count <= limits.max_streams);
    PROMISE(session->block.size <= limits.header_limit * 2 && session->gathered.size <= HEDDLE_H2_FRAME_SIZE);
    PROMISE(session->decoder.table.size <= HEDDLE_HPACK_DEFAULT_SIZE);
    PROMISE(session->receive_window <= (1 << 20));
    uint32_t listed = 0;
    size_t queued = 0;
    for (uint32_t i = 0; i < session->stream_count; i++) {
        const heddle_h2_stream *stream = session->streams[i];
        PROMISE(i == 0 || session->streams[i - 1]->id < stream->id);
        PROMISE(stream->listed == (stream->queued > 0 && stream->send_window > 0));
        PROMISE(stream->held || !heddle_h2_state_is_closed(stream->state));
        listed += stream->listed;
        queued += stream->queued;
    }
    PROMISE(listed == session->listed_count && queued == session->queued && !session->dead);
}

/* The output is whole frames; of DATA, no more than the windows allow that a client may have set at most. */
static void check_output(const outcome *out)
{
    heddle_h2_reader reader = {0};
    heddle_h2_piece piece;
    const uint8_t *at = (const uint8_t *)out->output, *end = at + out->output_size;
    bool in_block = false;
    for (;;) {
        heddle_h2_reading reading = heddle_h2_read(&reader, &at, end, &piece);
        if (reading == HEDDLE_H2_INCOMPLETE)
            break;
        if (reading != HEDDLE_H2_BEGIN)
            continue;
        PROMISE(reader.frame.length <= HEDDLE_H2_FRAME_SIZE);
        PROMISE(in_block == (reader.frame.type == HEDDLE_H2_CONTINUATION));
        if (reader.frame.type == HEDDLE_H2_HEADERS || reader.frame.type == HEDDLE_H2_CONTINUATION)
            in_block = !(reader.frame.flags & HEDDLE_H2_END_HEADERS);
    }
    PROMISE(!in_block && reader.header_size == 0);
}

/* In pieces of `step` bytes; all is pulled in the end only, so that cuts can't change the order of the output. */
static void run(outcome *out, const char *bytes, size_t size, size_t step)
{
    *out = (outcome){.output = malloc(MOST_OUTPUT + ROOM)};
    PROMISE(out->output);
    result = out;
    heddle_h2_session *session = heddle_h2_session_new(&operations, &limits, &workspace, NULL, 0, false);
    PROMISE(session);
    PROMISE(heddle_h2_feed(session, 1, HEDDLE_H2_PREFACE, HEDDLE_H2_PREFACE_SIZE) == HEDDLE_H2_PREFACE_SIZE);
    for (size_t at = 0; at < size;) {
        size_t piece = size - at < step ? size - at : step;
        char *copy = fuzz_copy(bytes + at, piece);
        size_t used = heddle_h2_feed(session, 1, copy, piece);
        free(copy);
        check_bounds(session);
        PROMISE(used <= piece);
        if (used == 0)
            break;
        at += used;
    }
    pull(session, 2);
    check_bounds(session);
    heddle_h2_expire(session, INT64_C(40) * 1000000000);
    heddle_h2_expire(session, INT64_C(80) * 1000000000);
    pull(session, INT64_C(80) * 1000000000);
    check_bounds(session);
    heddle_h2_abort(session, INT64_C(80) * 1000000000, HEDDLE_H2_NO_ERROR);
    pull(session, INT64_C(80) * 1000000000);
    PROMISE(out->held == 0);
    heddle_h2_session_free(session);
    PROMISE(loans == 0);
    check_output(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    limits = heddle_h2_default_limits();
    if (*data & 1) {
        limits.max_streams = MOST_STREAMS;
        limits.header_limit = 100;
        limits.header_count = 3;
        limits.crumb_count = 1;
        limits.connect_protocol = true;
        limits.control_answers = 2;
        limits.reset_burst = 2;
    }
    const char *bytes = (const char *)data + 1;
    outcome whole, other;
    size--;
    run(&whole, bytes, size, size);
    run(&other, bytes, size, 1);
    PROMISE(whole.output_size == other.output_size && whole.calls == other.calls);
    PROMISE(memcmp(whole.output, other.output, whole.output_size) == 0);
    free(whole.output);
    free(other.output);
    heddle_h2_workspace_free(&workspace);
    return 0;
}
