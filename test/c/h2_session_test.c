/* wrap: realloc */
/* sources: http/h2/[a-z]*.c http/text.c http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c http/authority.c http/rejection.c http/request_limits.c */

/* What the session does over time: windows, priorities, floods, stalls, drains, and what the owner may do when. */

#include "h2_owner.h"
#include "http/h2/session_state.h"

static test_owner *owner;
static heddle_h2_frame frame;
static bool is_out_of_memory;

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
    return is_out_of_memory ? NULL : __real_realloc(memory, size);
}
static uint8_t payload[HEDDLE_H2_FRAME_SIZE];

#define GET "\x82\x84\x86\x41\x01h"
#define POST "\x83\x84\x86\x41\x01h"

/* -- the client ---------------------------------------------------------------------------------------------------- */

static void send_frame(heddle_h2_type type, uint8_t flags, uint32_t stream, const void *bytes, size_t size)
{
    static uint8_t message[HEDDLE_H2_HEADER_SIZE + HEDDLE_H2_FRAME_SIZE];
    heddle_h2_put_header(message, (uint32_t)size, type, flags, stream);
    if (size > 0)
        memcpy(message + HEDDLE_H2_HEADER_SIZE, bytes, size);
    owner_feed(owner, message, HEDDLE_H2_HEADER_SIZE + size);
}

static void send_block(uint32_t stream, bool ended, const char *block, size_t size)
{
    send_frame(HEDDLE_H2_HEADERS, HEDDLE_H2_END_HEADERS | (ended ? HEDDLE_H2_END_STREAM : 0), stream, block, size);
}

/* A GET with one more field. */
static void send_get(uint32_t stream, const char *name, const char *value)
{
    char block[512];
    size_t size = sizeof(GET) - 1;
    memcpy(block, GET, size);
    if (name)
        size += (size_t)sprintf(block + size, "%c%c%s%c%s", 0x10, (char)strlen(name), name, (char)strlen(value), value);
    send_block(stream, true, block, size);
}

static void send_post(uint32_t stream)
{
    send_block(stream, false, POST, sizeof(POST) - 1);
}

static void send_number(heddle_h2_type type, uint32_t stream, uint32_t value)
{
    uint8_t bytes[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    send_frame(type, 0, stream, bytes, sizeof(bytes));
}

static void send_setting(uint8_t id, uint32_t value)
{
    uint8_t bytes[] = {0, id, (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    send_frame(HEDDLE_H2_SETTINGS, 0, 0, bytes, sizeof(bytes));
}

static void send_data(uint32_t stream, size_t size, bool end)
{
    static const uint8_t zeros[HEDDLE_H2_FRAME_SIZE];
    send_frame(HEDDLE_H2_DATA, end ? HEDDLE_H2_END_STREAM : 0, stream, zeros, size);
}

static void forget_output(void)
{
    owner_pull(owner);
    owner->out_size = 0;
}

static void connect_with(test_owner *made)
{
    owner = made;
    owner_connect(owner);
    owner_feed(owner, HEDDLE_H2_PREFACE, HEDDLE_H2_PREFACE_SIZE);
    send_frame(HEDDLE_H2_SETTINGS, 0, 0, NULL, 0);
    send_frame(HEDDLE_H2_SETTINGS, HEDDLE_H2_ACK, 0, NULL, 0);
    forget_output();
}

static void connect_owner(void)
{
    connect_with(owner_new());
}

/* The next frame of this type; others are passed over. */
static bool next_frame(heddle_h2_type type)
{
    while (owner_next(owner, &frame, payload)) {
        if (frame.type == type)
            return true;
    }
    return false;
}

static void expect_goaway(heddle_h2_error error)
{
    owner_pull(owner);
    CHECK(next_frame(HEDDLE_H2_GOAWAY));
    CHECK_EQUAL(error, heddle_h2_get_32(payload + 4));
    CHECK(!heddle_h2_is_open(owner->session));
}

static void expect_reset(uint32_t stream, heddle_h2_error error)
{
    owner_pull(owner);
    CHECK(next_frame(HEDDLE_H2_RST_STREAM));
    CHECK_EQUAL(stream, frame.stream);
    CHECK_EQUAL(error, heddle_h2_get_32(payload));
    CHECK(heddle_h2_is_open(owner->session));
}

static void ping_is_answered(void)
{
    send_frame(HEDDLE_H2_PING, 0, 0, "12345678", 8);
    owner_pull(owner);
    CHECK(next_frame(HEDDLE_H2_PING));
}

static heddle_h2_stream *stream_at(uint32_t id)
{
    CHECK(owner->streams[id / 2]);
    return owner->streams[id / 2];
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

static void owner_gets_a_request_in_the_form_of_http_1(void)
{
    static const char block[] = GET "\x10\x06" "cookie" "\x03" "a=b" "\x10\x03" "x-y" "\x01" "z"
                                "\x10\x06" "cookie" "\x03" "c=d" "\x10\x03" "a_b" "\x01" "z";
    connect_owner();
    send_block(1, true, block, sizeof(block) - 1);
    CHECK_EQUAL(1, owner->requests);
    CHECK(strcmp(owner->request, "cookie: a=b; c=d\nx-y: z\nhost: h\n") == 0);
    CHECK(strcmp(owner->target, "/") == 0);
    CHECK_EQUAL(HEDDLE_GET, owner->method);
    CHECK_EQUAL(HEDDLE_NO_BODY, owner->head.content_length);
    CHECK(owner->ended && owner->head.has_host);
    owner_pull(owner);
    CHECK_EQUAL(1, owner->completions);
    CHECK_EQUAL(0, owner->session->stream_count);
    owner_free(owner);
}

static void request_with_too_many_fields_gets_431(void)
{
    char block[4096];
    test_owner *made = owner_new();
    made->limits.header_count = 3;
    made->limits.crumb_count = 2;
    connect_with(made);
    for (int crumbs = 0; crumbs < 7; crumbs++) {
        size_t size = sizeof(GET) - 1;
        memcpy(block, GET, size);
        for (int i = 0; i < crumbs; i++)
            size += (size_t)sprintf(block + size, "\x10\x06" "cookie" "\x03" "a=b");
        send_block(2 * (uint32_t)crumbs + 1, true, block, size);
        CHECK_EQUAL(crumbs < 6 ? 0 : 1, owner->refused);
    }
    CHECK_EQUAL(431, owner->rejection);
    CHECK_EQUAL(6, owner->requests);
    ping_is_answered();
    owner_free(owner);
}

static void owner_knows_the_method_of_a_rejected_request(void)
{
    test_owner *made = owner_new();
    made->limits.header_count = 1;
    connect_with(made);
    static const char head[] = "\x02\x04HEAD\x84\x86\x41\x01h\x10\x01" "a\x01" "b\x10\x01" "a\x01" "b";
    send_block(1, true, head, sizeof(head) - 1);
    CHECK_EQUAL(431, owner->rejection);
    CHECK_EQUAL(HEDDLE_HEAD, owner->method);
    owner_free(owner);
}

static void extended_connect_is_accepted_only_if_it_was_offered(void)
{
    static const char block[] = "\x02\x07" "CONNECT" "\x10\x09:protocol\x09websocket" "\x86" "\x04\x05/chat"
                                "\x41\x01h";
    test_owner *made = owner_new();
    made->limits.connect_protocol = true;
    connect_with(made);
    send_block(1, false, block, sizeof(block) - 1);
    CHECK_EQUAL(1, owner->requests);
    CHECK_EQUAL(HEDDLE_CONNECT, owner->method);
    CHECK(strcmp(owner->target, "/chat") == 0);
    owner_free(owner);
}

static void settings_announce_the_limits_and_extensions(void)
{
    for (int offered = 0; offered < 2; offered++) {
        bool found = false;
        owner = owner_new();
        owner->limits.connect_protocol = offered;
        owner_connect(owner);
        owner_pull(owner);
        CHECK(owner_next(owner, &frame, payload));
        CHECK_EQUAL(HEDDLE_H2_SETTINGS, frame.type);
        for (uint32_t at = 0; at < frame.length; at += HEDDLE_H2_SETTING_SIZE)
            found |= payload[at + 1] == HEDDLE_H2_SET_ENABLE_CONNECT_PROTOCOL;
        CHECK_EQUAL(offered, found);
        CHECK(next_frame(HEDDLE_H2_WINDOW_UPDATE)); /* to 1 MiB */
        CHECK_EQUAL((1 << 20) - 65535, heddle_h2_get_32(payload));
        owner_free(owner);
    }
}

/* -- answers ------------------------------------------------------------------------------------------------------- */

static char *decode_answer(void)
{
    static char text[4096];
    static heddle_hpack_decoder decoder;
    static heddle_bytes scratch;
    heddle_hpack_field field;
    if (decoder.limit == 0)
        heddle_hpack_decoder_start(&decoder, 4096);
    heddle_hpack_block block = heddle_hpack_block_start(&decoder, &scratch, payload, frame.length);
    char *to = text;
    heddle_hpack_result result;
    while ((result = heddle_hpack_block_next(&block, &field)) == HEDDLE_HPACK_FIELD)
        to += sprintf(to, "%.*s: %.*s\n", (int)field.name_size, field.name, (int)field.value_size, field.value);
    CHECK_EQUAL(HEDDLE_HPACK_END, result);
    heddle_bytes_reset(&scratch, 0);
    if (decoder.table.count == 0)
        heddle_hpack_table_free(&decoder.table);
    return text;
}

static heddle_h2_field field(const char *name, const char *value)
{
    return (heddle_h2_field){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
}

static void fields_about_the_connection_are_removed_from_a_response(void)
{
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_get(1, NULL, NULL);
    heddle_h2_field hint = field("Link", "</a>; rel=preload");
    heddle_h2_field fields[] = {field("Connection", "keep-alive"), field("X-Name", "  b\t"), field("upgrade", "x"),
                                field("Transfer-Encoding", "chunked"), field("Keep-Alive", "1")};
    heddle_h2_session *session = owner->session;
    heddle_h2_stream *stream = stream_at(1);
    CHECK_EQUAL(HEDDLE_H2_MISPLACED, heddle_h2_finish(session, stream));
    CHECK_EQUAL(0, heddle_h2_write(session, stream, "a", 1));
    CHECK_EQUAL(HEDDLE_H2_MISPLACED, heddle_h2_write_head(session, stream, 101, NULL, 0, false));
    CHECK_EQUAL(HEDDLE_H2_WRITTEN, heddle_h2_write_head(session, stream, 103, &hint, 1, false));
    CHECK_EQUAL(HEDDLE_H2_WRITTEN, heddle_h2_write_head(session, stream, 200, fields, 5, false));
    CHECK_EQUAL(HEDDLE_H2_MISPLACED, heddle_h2_write_head(session, stream, 200, fields, 5, false));
    CHECK_EQUAL(4, heddle_h2_write(session, stream, "body", 4));
    CHECK_EQUAL(HEDDLE_H2_WRITTEN, heddle_h2_finish(session, stream));
    CHECK_EQUAL(0, heddle_h2_write(session, stream, "a", 1));
    owner_pull(owner);
    CHECK(next_frame(HEDDLE_H2_HEADERS));
    CHECK(strcmp(decode_answer(), ":status: 103\nlink: </a>; rel=preload\n") == 0);
    CHECK(next_frame(HEDDLE_H2_HEADERS));
    CHECK(strcmp(decode_answer(), ":status: 200\nx-name: b\n") == 0);
    CHECK(next_frame(HEDDLE_H2_DATA) && frame.flags & HEDDLE_H2_END_STREAM);
    CHECK_EQUAL(1, owner->completions);
    owner_free(owner);
}

static void bad_fields_are_never_sent(void)
{
    static const char *const names[] = {"", "a b", ":status", "a\n"};
    static const char *const values[] = {"a\r\nb: c", "a\n", "\x01"};
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_get(1, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        heddle_h2_field bad = field(names[i], "x");
        CHECK_EQUAL(HEDDLE_H2_BAD_NAME, heddle_h2_write_head(owner->session, stream_at(1), 200, &bad, 1, true));
    }
    for (int i = 0; i < 3; i++) {
        heddle_h2_field bad = field("x", values[i]);
        CHECK_EQUAL(HEDDLE_H2_BAD_VALUE, heddle_h2_write_head(owner->session, stream_at(1), 200, &bad, 1, true));
    }
    heddle_h2_field zero = {"x", "a\0b", 1, 3};
    CHECK_EQUAL(HEDDLE_H2_BAD_VALUE, heddle_h2_write_head(owner->session, stream_at(1), 200, &zero, 1, true));
    CHECK_EQUAL(0, heddle_h2_pull(owner->session, owner->now, owner->out, sizeof(owner->out)));
    owner_free(owner);
}

static void long_head_is_split_into_continuation_frames(void)
{
    static char value[50000];
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_get(1, NULL, NULL);
    memset(value, '!', sizeof(value)); /* ten bits each as Huffman code: sent plainly */
    heddle_h2_field large = {"x", value, 1, sizeof(value)};
    CHECK_EQUAL(HEDDLE_H2_WRITTEN, heddle_h2_write_head(owner->session, stream_at(1), 200, &large, 1, true));
    owner_pull(owner);
    CHECK(owner_next(owner, &frame, payload) && frame.type == HEDDLE_H2_HEADERS);
    CHECK_EQUAL(HEDDLE_H2_END_STREAM, frame.flags);
    for (int i = 0; i < 3; i++) {
        CHECK(owner_next(owner, &frame, payload) && frame.type == HEDDLE_H2_CONTINUATION);
        CHECK_EQUAL(i == 2 ? HEDDLE_H2_END_HEADERS : 0, frame.flags);
    }
    owner_free(owner);
}

static void response_before_the_end_of_the_request_resets_the_request(void)
{
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_post(1);
    heddle_h2_write_head(owner->session, stream_at(1), 413, NULL, 0, true);
    expect_reset(1, HEDDLE_H2_NO_ERROR);
    CHECK_EQUAL(1, owner->completions);
    send_data(1, 1000, true); /* was on its way */
    CHECK_EQUAL(0, owner->data);
    ping_is_answered();
    owner_free(owner);
}

/* -- windows ------------------------------------------------------------------------------------------------------- */

static void client_may_not_exceed_the_window_of_a_stream(void)
{
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_post(1);
    for (int i = 0; i < 4; i++)
        send_data(1, 16384, false);
    CHECK_EQUAL(0, owner->resets);
    owner->consumes = false;
    for (int i = 0; i < 4; i++)
        send_data(1, 16384, false);
    CHECK_EQUAL(8 * 16384, owner->data);
    CHECK_EQUAL(0, owner->resets);
    send_data(1, 1, false);
    CHECK_EQUAL(1, owner->resets);
    CHECK_EQUAL(HEDDLE_H2_FLOW_CONTROL_ERROR, owner->error);
    expect_reset(1, HEDDLE_H2_FLOW_CONTROL_ERROR);
    owner_free(owner);
}

static void client_may_not_exceed_the_window_of_the_connection(void)
{
    test_owner *made = owner_new();
    made->answers = made->consumes = false;
    connect_with(made);
    for (uint32_t id = 1; id < 2 * 16; id += 2) {
        send_post(id);
        for (int i = 0; i < 4; i++)
            send_data(id, 16384, false);
    }
    CHECK_EQUAL(1 << 20, owner->data);
    send_post(41);
    send_data(41, 1, false);
    expect_goaway(HEDDLE_H2_FLOW_CONTROL_ERROR);
    CHECK_EQUAL(17, owner->resets);
    owner_free(owner);
}

/* What a stream has not consumed comes back to the connection when it ends. */
static void unconsumed_bytes_of_a_reset_stream_are_credited(void)
{
    test_owner *made = owner_new();
    made->answers = made->consumes = false;
    connect_with(made);
    for (uint32_t id = 1; id < 2 * 60; id += 2) {
        send_post(id);
        for (int i = 0; i < 4; i++)
            send_data(id, 16384, false);
        send_number(HEDDLE_H2_RST_STREAM, id, HEDDLE_H2_CANCEL);
        forget_output();
    }
    CHECK_EQUAL(60 * 4 * 16384, owner->data);
    CHECK(heddle_h2_is_open(owner->session));
    owner_free(owner);
}

static void session_without_memory_for_a_credit_ends_all_streams(void)
{
    test_owner *made = owner_new();
    made->consumes = false;
    made->limits.connection_window = HEDDLE_H2_DEFAULT_WINDOW;
    connect_with(made);
    send_post(1);
    send_post(3);
    for (int i = 0; i < 3; i++)
        send_data(1, HEDDLE_H2_FRAME_SIZE, false);
    is_out_of_memory = true;
    send_number(HEDDLE_H2_RST_STREAM, 1, HEDDLE_H2_CANCEL);
    CHECK(!heddle_h2_is_open(owner->session));
    CHECK_EQUAL(2, owner->resets);
    CHECK_EQUAL(0, owner->session->stream_count);
    owner_free(owner);
}

static void client_may_widen_a_window_up_to_the_maximum(void)
{
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_get(1, NULL, NULL);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 1, HEDDLE_H2_LARGEST_WINDOW - HEDDLE_H2_DEFAULT_WINDOW);
    CHECK_EQUAL(0, owner->resets);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 1, 1);
    expect_reset(1, HEDDLE_H2_FLOW_CONTROL_ERROR);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 0, HEDDLE_H2_LARGEST_WINDOW - HEDDLE_H2_DEFAULT_WINDOW);
    CHECK(heddle_h2_is_open(owner->session));
    send_number(HEDDLE_H2_WINDOW_UPDATE, 0, 1);
    expect_goaway(HEDDLE_H2_FLOW_CONTROL_ERROR);
    owner_free(owner);
}

static void settings_do_not_change_the_window_of_a_stream_that_has_ended(void)
{
    test_owner *made = owner_new();
    made->answers = false;
    made->keeps = true; /* as while the application still runs */
    connect_with(made);
    send_get(1, NULL, NULL);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 1, HEDDLE_H2_LARGEST_WINDOW - HEDDLE_H2_DEFAULT_WINDOW);
    send_number(HEDDLE_H2_RST_STREAM, 1, HEDDLE_H2_CANCEL);
    CHECK_EQUAL(1, owner->resets);
    send_setting(HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, HEDDLE_H2_DEFAULT_WINDOW + 1);
    CHECK(heddle_h2_is_open(owner->session));
    owner_free(owner);
}

static void padding_counts_against_the_window_and_is_credited(void)
{
    static uint8_t padded[16384] = {255};
    connect_owner();
    owner->answers = false;
    send_post(1);
    for (int i = 0; i < 100; i++) {
        send_frame(HEDDLE_H2_DATA, HEDDLE_H2_PADDED, 1, padded, sizeof(padded));
        forget_output();
    }
    CHECK_EQUAL(100 * (16384 - 256), owner->data);
    CHECK_EQUAL(0, owner->resets);
    owner_free(owner);
}

static void body_waits_for_the_windows_of_the_client(void)
{
    static char body[200000];
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_get(1, NULL, NULL);
    heddle_h2_write_head(owner->session, stream_at(1), 200, NULL, 0, false);
    CHECK(heddle_h2_write_whole(owner->session, stream_at(1), body, sizeof(body), NULL, 0));
    CHECK_EQUAL(HEDDLE_H2_WRITTEN, heddle_h2_finish(owner->session, stream_at(1)));
    size_t got = 0;
    for (int updates = 0;; updates++) {
        owner_pull(owner);
        bool end = false;
        while (next_frame(HEDDLE_H2_DATA)) {
            got += frame.length;
            end = frame.flags & HEDDLE_H2_END_STREAM;
        }
        CHECK_EQUAL(end, got == sizeof(body));
        if (end)
            break;
        CHECK(got <= 65535 + 20000u * (unsigned)updates);
        send_number(HEDDLE_H2_WINDOW_UPDATE, 1, 20000);
        send_number(HEDDLE_H2_WINDOW_UPDATE, 0, 20000);
    }
    CHECK_EQUAL(1, owner->completions);
    owner_free(owner);
}

static void count_return(void *loan)
{
    ++*(int *)loan;
}

/* The owner has let the stream go. */
static void lend_once(uint32_t id, const char *body, size_t size, int *returned)
{
    send_get(id, NULL, NULL);
    heddle_h2_write_head(owner->session, stream_at(id), 200, NULL, 0, false);
    CHECK(heddle_h2_lend(owner->session, stream_at(id), body, size, count_return, returned));
    heddle_h2_finish(owner->session, stream_at(id));
    heddle_h2_release(owner->session, stream_at(id));
    forget_output();
}

static void loan_of_bytes_ends_once_however_the_stream_ends(void)
{
    static char body[300000];
    int returned[3] = {0};
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 0, 1 << 24);
    for (uint32_t i = 0; i < 3; i++)
        lend_once(2 * i + 1, body, sizeof(body), &returned[i]);
    send_get(7, NULL, NULL);
    heddle_h2_write_head(owner->session, stream_at(7), 200, NULL, 0, false);
    CHECK_EQUAL(256 << 10, heddle_h2_write(owner->session, stream_at(7), body, sizeof(body))); /* loans take no room */
    send_number(HEDDLE_H2_WINDOW_UPDATE, 1, sizeof(body));
    forget_output();
    CHECK_EQUAL(1, returned[0]);
    send_number(HEDDLE_H2_RST_STREAM, 3, HEDDLE_H2_CANCEL);
    CHECK_EQUAL(1, returned[1]);
    CHECK_EQUAL(0, returned[2]);
    owner_free(owner);
    CHECK_EQUAL(1, returned[0]);
    CHECK_EQUAL(1, returned[1]);
    CHECK_EQUAL(1, returned[2]);
}

static void writer_is_notified_when_there_is_room(void)
{
    static char body[300000];
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 0, 1 << 30);
    send_get(1, NULL, NULL);
    heddle_h2_write_head(owner->session, stream_at(1), 200, NULL, 0, false);
    CHECK_EQUAL(256 << 10, heddle_h2_write(owner->session, stream_at(1), body, sizeof(body)));
    CHECK_EQUAL(0, heddle_h2_write(owner->session, stream_at(1), body, sizeof(body)));
    forget_output();
    CHECK_EQUAL(0, owner->windows);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 1, 70000);
    forget_output();
    CHECK_EQUAL(1, owner->windows);
    owner_free(owner);
}

/* -- priorities ---------------------------------------------------------------------------------------------------- */

/* The streams of the DATA frames, in their order. */
static void expect_order(const char *expected)
{
    char order[64] = "";
    owner_pull(owner);
    while (next_frame(HEDDLE_H2_DATA))
        sprintf(order + strlen(order), "%u", frame.stream);
    if (strcmp(expected, order) != 0)
        printf("    %s\n", order);
    CHECK(strcmp(expected, order) == 0);
}

static void answer_with(uint32_t id, const char *body, size_t size)
{
    heddle_h2_write_head(owner->session, stream_at(id), 200, NULL, 0, false);
    CHECK(heddle_h2_write_whole(owner->session, stream_at(id), body, size, NULL, 0));
    heddle_h2_finish(owner->session, stream_at(id));
}

static void urgent_streams_come_first_and_incremental_streams_share(void)
{
    static char body[2 * HEDDLE_H2_FRAME_SIZE];
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_setting(HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, 1 << 20);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 0, 1 << 24);
    send_get(1, "priority", "u=5");
    send_get(3, "priority", "u=1, i");
    send_get(5, "priority", "i, u=1");
    send_get(7, "priority", "u=0");
    send_get(9, NULL, NULL);
    for (uint32_t id = 1; id <= 9; id += 2)
        answer_with(id, body, sizeof(body));
    expect_order("7735359911");
    owner_free(owner);
}

static void priority_update_changes_the_order(void)
{
    static char body[HEDDLE_H2_FRAME_SIZE];
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_number(HEDDLE_H2_WINDOW_UPDATE, 0, 1 << 24);
    send_frame(HEDDLE_H2_PRIORITY_UPDATE, 0, 0, "\0\0\0\5u=2", 7); /* before the request, which says less */
    send_get(1, NULL, NULL);
    send_get(3, NULL, NULL);
    send_get(5, "priority", "u=7");
    for (uint32_t id = 1; id <= 5; id += 2)
        answer_with(id, body, sizeof(body));
    send_frame(HEDDLE_H2_PRIORITY_UPDATE, 0, 0, "\0\0\0\3u=0", 7);
    expect_order("351");
    owner_free(owner);
}

/* -- floods -------------------------------------------------------------------------------------------------------- */

static void resets_by_either_side_share_one_budget(void)
{
    for (int by_client = 0; by_client < 2; by_client++) {
        connect_owner();
        owner->answers = false;
        for (uint32_t id = 1; id <= 2 * 101; id += 2) {
            CHECK(heddle_h2_is_open(owner->session));
            send_post(id);
            /* MadeYouReset: the server resets because the client breaks a rule. */
            send_number(by_client ? HEDDLE_H2_RST_STREAM : HEDDLE_H2_WINDOW_UPDATE, id, 0);
            owner->out_size = 0;
        }
        expect_goaway(HEDDLE_H2_ENHANCE_YOUR_CALM);
        owner_free(owner);
    }
    connect_owner(); /* 33 a second are no flood */
    owner->answers = false;
    for (uint32_t id = 1; id < 2 * 1000; id += 2) {
        send_post(id);
        send_number(HEDDLE_H2_RST_STREAM, id, 0);
        owner->now += SECOND / 32;
        forget_output();
    }
    CHECK(heddle_h2_is_open(owner->session));
    owner_free(owner);
}

static void running_request_counts_as_a_stream_after_a_reset(void)
{
    test_owner *made = owner_new();
    made->answers = false;
    made->keeps = true;
    made->limits.max_streams = 10;
    connect_with(made);
    for (uint32_t id = 1; id < 2 * 11; id += 2) {
        send_post(id);
        send_number(HEDDLE_H2_RST_STREAM, id, HEDDLE_H2_CANCEL);
    }
    CHECK_EQUAL(10, owner->requests);
    expect_reset(21, HEDDLE_H2_REFUSED_STREAM);
    heddle_h2_release(owner->session, stream_at(1));
    send_get(23, NULL, NULL);
    CHECK_EQUAL(11, owner->requests);
    owner_free(owner);
}

static void refused_streams_have_a_budget(void)
{
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    for (uint32_t id = 1; id < 2 * 202; id += 2)
        send_get(id, NULL, NULL);
    CHECK_EQUAL(100, owner->requests);
    expect_goaway(HEDDLE_H2_ENHANCE_YOUR_CALM);
    owner_free(owner);
}

static void flood(heddle_h2_type type, uint32_t stream, const void *bytes, size_t size, bool pull, unsigned most)
{
    unsigned count = 0;
    connect_owner();
    owner->answers = false;
    send_post(1);
    forget_output();
    while (heddle_h2_is_open(owner->session)) {
        CHECK(count++ <= most);
        send_frame(type, 0, stream, bytes, size);
        if (pull && heddle_h2_is_open(owner->session))
            forget_output();
    }
    expect_goaway(HEDDLE_H2_ENHANCE_YOUR_CALM);
    owner_free(owner);
}

static void control_frames_have_a_budget(void)
{
    flood(HEDDLE_H2_PING, 0, "12345678", 8, false, 101);
    flood(HEDDLE_H2_PING, 0, "12345678", 8, true, 1001);
    flood(HEDDLE_H2_SETTINGS, 0, NULL, 0, false, 101);
    flood(HEDDLE_H2_SETTINGS, 0, NULL, 0, true, 1001);
    flood(HEDDLE_H2_DATA, 1, NULL, 0, true, 1001);
    flood(HEDDLE_H2_PRIORITY, 1, "\0\0\0\0\1", 5, true, 111);
    flood(HEDDLE_H2_WINDOW_UPDATE, 1, "\0\0\0\1", 4, true, 111);
    flood(HEDDLE_H2_PRIORITY_UPDATE, 0, "\0\0\0\1", 4, true, 111);
    flood(0xFF, 0, NULL, 0, true, 1001);
}

/* A long download by a client that updates two windows for each 4 KiB, as Go's clients do. */
static void ordinary_window_updates_do_not_count_as_a_flood(void)
{
    enum { READ = 4096 };
    static char body[HEDDLE_H2_FRAME_SIZE];
    test_owner *made = owner_new();
    made->answers = false;
    connect_with(made);
    send_get(1, NULL, NULL);
    heddle_h2_write_head(owner->session, stream_at(1), 200, NULL, 0, false);
    for (int i = 0; i < 25000; i++) {
        CHECK(heddle_h2_write_whole(owner->session, stream_at(1), body, sizeof(body), NULL, 0));
        forget_output();
        for (size_t at = 0; at < sizeof(body); at += READ) {
            send_number(HEDDLE_H2_WINDOW_UPDATE, 1, READ);
            send_number(HEDDLE_H2_WINDOW_UPDATE, 0, READ);
        }
        CHECK(heddle_h2_is_open(owner->session));
    }
    owner_free(owner);
}

static void requests_without_bodies_do_not_count_as_a_flood(void)
{
    connect_owner();
    send_number(HEDDLE_H2_WINDOW_UPDATE, 0, 1 << 30);
    for (uint32_t id = 1; id < 2 * 300000; id += 2) {
        send_get(id, NULL, NULL);
        forget_output();
    }
    CHECK_EQUAL(300000, owner->requests);
    CHECK_EQUAL(300000, owner->completions);
    owner_free(owner);
}

static void input_is_not_read_while_the_client_reads_no_output(void)
{
    static const char request[] = "\0\0\6\1\5\0\0\0\0" GET;
    connect_owner();
    size_t used = 1;
    uint32_t id = 1;
    while (used > 0 && id < 2 * 100000) {
        uint8_t bytes[sizeof(request) - 1];
        memcpy(bytes, request, sizeof(bytes));
        heddle_h2_put_header(bytes, 6, HEDDLE_H2_HEADERS, 5, id);
        used = heddle_h2_feed(owner->session, owner->now, bytes, sizeof(bytes));
        id += 2;
        if (owner->requests == 100)
            break; /* all streams are taken: they end when their answers are fetched */
    }
    CHECK_EQUAL(100, owner->requests);
    CHECK_EQUAL(100, owner->session->stream_count);
    owner_free(owner);
}

static void feed_stops_after_a_number_of_streams(void)
{
    static uint8_t bytes[15 * 8];
    test_owner *made = owner_new();
    made->limits.streams_per_feed = 5;
    connect_with(made);
    for (unsigned i = 0; i < 8; i++)
        memcpy(heddle_h2_put_header(bytes + 15 * i, 6, HEDDLE_H2_HEADERS, 5, 2 * i + 1), GET, 6);
    CHECK_EQUAL(75, heddle_h2_feed(owner->session, owner->now, bytes, sizeof(bytes)));
    CHECK_EQUAL(5, owner->requests);
    CHECK_EQUAL(45, heddle_h2_feed(owner->session, owner->now, bytes + 75, 45));
    CHECK_EQUAL(8, owner->requests);
    owner_free(owner);
}

static void feed_stops_after_a_number_of_fields(void)
{
    static uint8_t bytes[15 * 8];
    test_owner *made = owner_new();
    made->limits.fields_per_feed = 10;
    connect_with(made);
    for (unsigned i = 0; i < 8; i++)
        memcpy(heddle_h2_put_header(bytes + 15 * i, 6, HEDDLE_H2_HEADERS, 5, 2 * i + 1), GET, 6);
    CHECK_EQUAL(45, heddle_h2_feed(owner->session, owner->now, bytes, sizeof(bytes))); /* four fields each */
    CHECK(heddle_h2_fed_enough(owner->session));
    CHECK_EQUAL(3, owner->requests);
    CHECK_EQUAL(15, heddle_h2_feed(owner->session, owner->now, bytes + 45, 15));
    CHECK(!heddle_h2_fed_enough(owner->session));
    CHECK_EQUAL(4, owner->requests);
    owner_free(owner);
}

/* -- times --------------------------------------------------------------------------------------------------------- */

/* Until `end`, with so many bytes of window each second. */
static void run_until(int64_t end, uint32_t window)
{
    while (owner->now < end && heddle_h2_is_open(owner->session)) {
        owner->now += SECOND;
        if (window > 0 && owner->session->stream_count > 0)
            send_number(HEDDLE_H2_WINDOW_UPDATE, 1, window);
        forget_output();
        if (owner->now >= heddle_h2_deadline(owner->session))
            heddle_h2_expire(owner->session, owner->now);
    }
}

static void stalled_output_is_detected_by_its_progress(void)
{
    static char body[100000];
    static const struct {
        uint32_t a_second;
        bool stalls;
    } cases[] = {{0, true}, {1, true}, {900, true}, {1100, false}};
    for (int i = 0; i < 4; i++) {
        test_owner *made = owner_new();
        made->answers = false;
        connect_with(made);
        send_setting(HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, 0);
        send_get(1, NULL, NULL);
        answer_with(1, body, sizeof(body));
        run_until(29 * SECOND, cases[i].a_second);
        CHECK_EQUAL(0, owner->resets);
        run_until(62 * SECOND, cases[i].a_second);
        CHECK_EQUAL(cases[i].stalls, owner->resets);
        CHECK(heddle_h2_is_open(owner->session));
        owner_free(owner);
    }
}

static void write_timeout_may_exceed_a_minute(void)
{
    static char body[100000];
    test_owner *made = owner_new();
    made->answers = false;
    made->limits.write_timeout = 100 * SECOND;
    connect_with(made);
    send_setting(HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, 0);
    send_get(1, NULL, NULL);
    answer_with(1, body, sizeof(body));
    run_until(99 * SECOND, 0);
    CHECK_EQUAL(0, owner->resets);
    run_until(202 * SECOND, 0);
    CHECK_EQUAL(1, owner->resets);
    owner_free(owner);
}

static void unread_output_ends_the_connection(void)
{
    connect_owner();
    send_get(1, NULL, NULL);
    for (int i = 0; i < 50; i++) {
        owner->now += SECOND;
        if (owner->now >= heddle_h2_deadline(owner->session))
            heddle_h2_expire(owner->session, owner->now);
    }
    expect_goaway(HEDDLE_H2_ENHANCE_YOUR_CALM);
    owner_free(owner);
}

static void idle_connection_ends_in_spite_of_pings(void)
{
    connect_owner();
    for (int i = 0; i < 80 && heddle_h2_is_open(owner->session); i++) {
        owner->now += SECOND;
        ping_is_answered();
        if (owner->now >= heddle_h2_deadline(owner->session))
            heddle_h2_expire(owner->session, owner->now);
    }
    expect_goaway(HEDDLE_H2_NO_ERROR);
    CHECK_EQUAL(76 * SECOND, owner->now);
    owner_free(owner);
}

static void incomplete_header_block_has_a_deadline(void)
{
    connect_owner();
    send_frame(HEDDLE_H2_HEADERS, HEDDLE_H2_END_STREAM, 1, GET, 6);
    CHECK_EQUAL(owner->now + 10 * SECOND, heddle_h2_deadline(owner->session));
    owner->now += 10 * SECOND;
    heddle_h2_expire(owner->session, owner->now);
    expect_goaway(HEDDLE_H2_ENHANCE_YOUR_CALM);
    owner_free(owner);
}

static void incomplete_preface_has_a_deadline(void)
{
    owner = owner_new();
    owner_connect(owner);
    owner_feed(owner, "PRI", 3);
    forget_output();
    owner->now = heddle_h2_deadline(owner->session);
    CHECK_EQUAL(11 * SECOND, owner->now);
    heddle_h2_expire(owner->session, owner->now);
    expect_goaway(HEDDLE_H2_SETTINGS_TIMEOUT);
    owner_free(owner);
}

static void drain_sends_two_goaway_frames_and_loses_no_request(void)
{
    connect_owner();
    owner->answers = false;
    send_get(1, NULL, NULL);
    heddle_h2_drain(owner->session, owner->now);
    owner_pull(owner);
    CHECK(next_frame(HEDDLE_H2_GOAWAY));
    CHECK_EQUAL(INT32_MAX, heddle_h2_get_32(payload));
    send_get(3, NULL, NULL); /* was on its way */
    CHECK_EQUAL(2, owner->requests);
    owner->now = heddle_h2_deadline(owner->session);
    CHECK_EQUAL(2 * SECOND, owner->now);
    heddle_h2_expire(owner->session, owner->now);
    owner_pull(owner);
    CHECK(next_frame(HEDDLE_H2_GOAWAY));
    CHECK_EQUAL(3, heddle_h2_get_32(payload));
    send_get(5, NULL, NULL); /* is sent again, over another connection */
    send_post(7);
    send_data(7, 10, true);
    CHECK_EQUAL(2, owner->requests);
    CHECK(heddle_h2_is_open(owner->session));
    owner_answer(owner, stream_at(1));
    owner_answer(owner, stream_at(3));
    CHECK(heddle_h2_is_open(owner->session));
    owner_pull(owner);
    CHECK(!heddle_h2_is_open(owner->session));
    CHECK(next_frame(HEDDLE_H2_DATA));
    CHECK(!heddle_h2_has_output(owner->session));
    owner_free(owner);
}

static void idle_session_frees_its_memory(void)
{
    connect_owner();
    send_get(1, NULL, NULL);
    forget_output();
    CHECK_EQUAL(0, owner->session->stream_count);
    int64_t end = owner->now + 75 * SECOND;
    CHECK_EQUAL(owner->now + 2 * SECOND, heddle_h2_deadline(owner->session));
    CHECK(!owner->session->schedule);
    CHECK(owner->session->remembered);
    owner->now += 2 * SECOND;
    heddle_h2_expire(owner->session, owner->now);
    CHECK(!owner->session->remembered);
    CHECK(!owner->session->streams);
    CHECK_EQUAL(0, owner->session->encoder.table.room);
    CHECK_EQUAL(end, heddle_h2_deadline(owner->session));
    send_get(3, NULL, NULL); /* whose answer says that the encoder's table is empty */
    owner_pull(owner);
    CHECK(next_frame(HEDDLE_H2_HEADERS));
    ping_is_answered();
    owner_free(owner);
}

#define RUN(group, test) check_run(group, #test, test)

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    RUN("h2 requests", owner_gets_a_request_in_the_form_of_http_1);
    RUN("h2 requests", request_with_too_many_fields_gets_431);
    RUN("h2 requests", owner_knows_the_method_of_a_rejected_request);
    RUN("h2 requests", extended_connect_is_accepted_only_if_it_was_offered);
    RUN("h2 requests", settings_announce_the_limits_and_extensions);
    RUN("h2 answers", fields_about_the_connection_are_removed_from_a_response);
    RUN("h2 answers", bad_fields_are_never_sent);
    RUN("h2 answers", long_head_is_split_into_continuation_frames);
    RUN("h2 answers", response_before_the_end_of_the_request_resets_the_request);
    RUN("h2 windows", client_may_not_exceed_the_window_of_a_stream);
    RUN("h2 windows", client_may_not_exceed_the_window_of_the_connection);
    RUN("h2 windows", unconsumed_bytes_of_a_reset_stream_are_credited);
    RUN("h2 windows", session_without_memory_for_a_credit_ends_all_streams);
    RUN("h2 windows", client_may_widen_a_window_up_to_the_maximum);
    RUN("h2 windows", settings_do_not_change_the_window_of_a_stream_that_has_ended);
    RUN("h2 windows", padding_counts_against_the_window_and_is_credited);
    RUN("h2 windows", body_waits_for_the_windows_of_the_client);
    RUN("h2 windows", loan_of_bytes_ends_once_however_the_stream_ends);
    RUN("h2 windows", writer_is_notified_when_there_is_room);
    RUN("h2 priorities", urgent_streams_come_first_and_incremental_streams_share);
    RUN("h2 priorities", priority_update_changes_the_order);
    RUN("h2 floods", resets_by_either_side_share_one_budget);
    RUN("h2 floods", running_request_counts_as_a_stream_after_a_reset);
    RUN("h2 floods", refused_streams_have_a_budget);
    RUN("h2 floods", control_frames_have_a_budget);
    RUN("h2 floods", ordinary_window_updates_do_not_count_as_a_flood);
    RUN("h2 floods", requests_without_bodies_do_not_count_as_a_flood);
    RUN("h2 floods", input_is_not_read_while_the_client_reads_no_output);
    RUN("h2 floods", feed_stops_after_a_number_of_streams);
    RUN("h2 floods", feed_stops_after_a_number_of_fields);
    RUN("h2 times", stalled_output_is_detected_by_its_progress);
    RUN("h2 times", write_timeout_may_exceed_a_minute);
    RUN("h2 times", unread_output_ends_the_connection);
    RUN("h2 times", idle_connection_ends_in_spite_of_pings);
    RUN("h2 times", incomplete_header_block_has_a_deadline);
    RUN("h2 times", incomplete_preface_has_a_deadline);
    RUN("h2 times", drain_sends_two_goaway_frames_and_loses_no_request);
    RUN("h2 times", idle_session_frees_its_memory);
    return check_end();
}
