/* sources: http/h2/[a-z]*.c http/text.c http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c http/authority.c http/rejection.c http/request_limits.c */

/* Streams that carry a WebSocket: what is written whole, and how they end. */

#include "h2_owner.h"
#include "http/h2/session_state.h"

static test_owner *owner;
static heddle_h2_stream *stream;
static heddle_h2_frame frame;
static uint8_t payload[HEDDLE_H2_FRAME_SIZE];

static void send_frame(heddle_h2_type type, uint8_t flags, uint32_t id, const void *bytes, size_t size)
{
    uint8_t message[512];
    uint8_t *to = heddle_h2_put_header(message, (uint32_t)size, type, flags, id);
    if (size > 0)
        memcpy(to, bytes, size);
    owner_feed(owner, message, HEDDLE_H2_HEADER_SIZE + size);
}

static void widen_window(uint32_t bytes)
{
    const uint8_t number[] = {(uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16), (uint8_t)(bytes >> 8), (uint8_t)bytes};
    send_frame(HEDDLE_H2_WINDOW_UPDATE, 0, 1, number, sizeof(number));
}

static void end_input(void)
{
    send_frame(HEDDLE_H2_DATA, HEDDLE_H2_END_STREAM, 1, NULL, 0);
}

/* A tunnel whose client takes so many bytes. */
static void open_tunnel(uint8_t window)
{
    static const char block[] = "\x02\x07" "CONNECT" "\x10\x09:protocol\x09websocket" "\x86" "\x04\x05/chat"
                                "\x41\x01h";
    const uint8_t setting[] = {0, HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, 0, 0, 0, window};
    owner = owner_new();
    owner->limits.connect_protocol = true;
    owner->limits.updates = 1 << 20;
    owner->answers = false;
    owner->keeps = true;
    owner_connect(owner);
    owner_feed(owner, HEDDLE_H2_PREFACE, HEDDLE_H2_PREFACE_SIZE);
    send_frame(HEDDLE_H2_SETTINGS, 0, 0, setting, sizeof(setting));
    send_frame(HEDDLE_H2_SETTINGS, HEDDLE_H2_ACK, 0, NULL, 0);
    send_frame(HEDDLE_H2_HEADERS, HEDDLE_H2_END_HEADERS, 1, block, sizeof(block) - 1);
    stream = owner->streams[0];
    CHECK(stream);
    CHECK_EQUAL(HEDDLE_H2_WRITTEN, heddle_h2_write_head(owner->session, stream, 200, NULL, 0, false));
    stream->tunnel = true;
    owner_pull(owner);
    owner->out_size = 0;
}

static bool next_frame(heddle_h2_type type)
{
    owner_pull(owner);
    while (owner_next(owner, &frame, payload)) {
        if (frame.type == type)
            return true;
    }
    return false;
}

static void expect_data(const char *bytes, bool end)
{
    CHECK(next_frame(HEDDLE_H2_DATA));
    CHECK_EQUAL(strlen(bytes), frame.length);
    CHECK(memcmp(payload, bytes, frame.length) == 0);
    CHECK_EQUAL(end, (frame.flags & HEDDLE_H2_END_STREAM) != 0);
}

static void expect_end(bool abrupt, heddle_h2_error error)
{
    heddle_h2_end_tunnel(owner->session, stream, abrupt);
    CHECK(next_frame(HEDDLE_H2_RST_STREAM));
    CHECK_EQUAL(error, heddle_h2_get_32(payload));
    CHECK_EQUAL(0, owner->resets); /* the owner knows */
    CHECK_EQUAL(0, stream->queued);
    CHECK(!heddle_h2_write_whole(owner->session, stream, "a", 1, NULL, 0));
    heddle_h2_end_tunnel(owner->session, stream, abrupt); /* nothing */
    CHECK(!next_frame(HEDDLE_H2_RST_STREAM));
    owner_free(owner);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static void pieces_are_sent_in_order_as_the_window_opens(void)
{
    open_tunnel(4);
    CHECK(heddle_h2_write_whole(owner->session, stream, "ab", 2, "cdef", 4));
    CHECK_EQUAL(6, stream->queued);
    expect_data("abcd", false);
    CHECK_EQUAL(2, stream->queued);
    CHECK_EQUAL(0, owner->windows);
    widen_window(10);
    expect_data("ef", false);
    CHECK_EQUAL(0, stream->queued);
    CHECK_EQUAL(1, owner->windows);
    owner_free(owner);
}

static void empty_pieces_are_allowed(void)
{
    open_tunnel(100);
    CHECK(heddle_h2_write_whole(owner->session, stream, NULL, 0, NULL, 0));
    CHECK_EQUAL(0, stream->queued);
    CHECK(!next_frame(HEDDLE_H2_DATA));
    CHECK(heddle_h2_write_whole(owner->session, stream, "a", 1, NULL, 0));
    CHECK(heddle_h2_write_whole(owner->session, stream, NULL, 0, "b", 1));
    expect_data("ab", false);
    owner_free(owner);
}

/* The owner bounds what waits, not the session: a message is never cut. */
static void whole_write_is_not_limited_by_the_buffer(void)
{
    static char bytes[1 << 20];
    open_tunnel(0);
    owner->limits.stream_output = 1000;
    CHECK(heddle_h2_write_whole(owner->session, stream, bytes, sizeof(bytes), bytes, sizeof(bytes)));
    CHECK_EQUAL(2 * sizeof(bytes), stream->queued);
    owner_free(owner);
}

/* 65,000 bytes wait, of which the connection may keep 60,000: as long as that a client may be about to read. */
static void share_is_exceeded_when_too_much_output_has_waited_for_a_second(void)
{
    static char bytes[65000];
    open_tunnel(0);
    owner->limits.connection_output = 60000;
    owner->session->now = SECOND;
    CHECK(heddle_h2_write_whole(owner->session, stream, bytes, 60000, NULL, 0));
    owner->session->now = 5 * SECOND;
    CHECK(!heddle_h2_exceeds_share(owner->session, stream)); /* no more than it may keep */
    CHECK(heddle_h2_write_whole(owner->session, stream, bytes, 5000, NULL, 0));
    CHECK(!heddle_h2_exceeds_share(owner->session, stream));
    owner->session->now = 6 * SECOND - 1;
    CHECK(!heddle_h2_exceeds_share(owner->session, stream));
    owner->session->now = 6 * SECOND;
    CHECK(heddle_h2_exceeds_share(owner->session, stream));
    owner->now = 6 * SECOND;
    widen_window(10000);
    CHECK(next_frame(HEDDLE_H2_DATA));
    CHECK(!heddle_h2_exceeds_share(owner->session, stream));
    owner_free(owner);
}

static void write_after_the_end_fails(void)
{
    open_tunnel(0);
    CHECK(heddle_h2_write_whole(owner->session, stream, "a", 1, NULL, 0));
    CHECK_EQUAL(HEDDLE_H2_WRITTEN, heddle_h2_finish(owner->session, stream));
    CHECK(!heddle_h2_write_whole(owner->session, stream, "b", 1, NULL, 0));
    widen_window(10);
    expect_data("a", true);
    owner_free(owner);
}

static void bytes_keep_their_order_for_all_sizes_and_windows(void)
{
    static const size_t sizes[] = {0, 1, 7, 100, 3000};
    static char bytes[3000];
    uint32_t seed = 20261123;
    uint8_t written = 0, seen = 0;
    open_tunnel(0);
    for (unsigned step = 0; step < 3000; step++) {
        size_t parts[2];
        for (unsigned part = 0; part < 2; part++) {
            seed = seed * 1664525 + 1013904223;
            parts[part] = sizes[(seed >> 16) % 5];
        }
        char *both = bytes;
        size_t first = parts[0] / 2, second = parts[1] / 2;
        for (size_t i = 0; i < first + second; i++)
            both[i] = (char)written++;
        CHECK(heddle_h2_write_whole(owner->session, stream, both, first, both + first, second));
        if (seed >> 30)
            widen_window(1 + (seed >> 20));
        send_frame(HEDDLE_H2_WINDOW_UPDATE, 0, 0, "\0\0\x10\0", 4);
        while (next_frame(HEDDLE_H2_DATA)) {
            for (uint32_t i = 0; i < frame.length; i++)
                CHECK_EQUAL(seen++, payload[i]);
        }
        owner->out_size = 0;
    }
    CHECK_EQUAL((uint8_t)(written - stream->queued), seen);
    CHECK(heddle_h2_is_open(owner->session));
    owner_free(owner);
}

/* -- ends ---------------------------------------------------------------------------------------------------------- */

static void end_of_a_tunnel_open_both_ways_cancels_it(void)
{
    open_tunnel(0);
    CHECK(heddle_h2_write_whole(owner->session, stream, "unsent", 6, NULL, 0));
    expect_end(false, HEDDLE_H2_CANCEL);
}

static void end_of_a_tunnel_that_the_client_has_ended_sends_end_stream(void)
{
    open_tunnel(10);
    end_input();
    heddle_h2_end_tunnel(owner->session, stream, false);
    expect_data("", true);
    CHECK(!next_frame(HEDDLE_H2_RST_STREAM));
    CHECK_EQUAL(0, owner->resets);
    owner_free(owner);
}

static void end_of_a_tunnel_with_unsent_bytes_cancels_it(void)
{
    open_tunnel(0);
    end_input();
    CHECK(heddle_h2_write_whole(owner->session, stream, "unsent", 6, NULL, 0));
    expect_end(false, HEDDLE_H2_CANCEL);
}

static void end_of_a_tunnel_that_the_server_has_ended_is_a_reset_without_an_error(void)
{
    open_tunnel(10);
    heddle_h2_finish(owner->session, stream);
    expect_data("", true);
    expect_end(false, HEDDLE_H2_NO_ERROR);
}

static void abrupt_end_of_a_tunnel_is_a_reset(void)
{
    open_tunnel(10);
    end_input();
    expect_end(true, HEDDLE_H2_CANCEL);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("writing", "pieces are sent in order as the window opens", pieces_are_sent_in_order_as_the_window_opens);
    check_run("writing", "empty pieces are allowed", empty_pieces_are_allowed);
    check_run("writing", "whole write is not limited by the buffer", whole_write_is_not_limited_by_the_buffer);
    check_run("writing", "share is exceeded when too much output has waited for a second",
              share_is_exceeded_when_too_much_output_has_waited_for_a_second);
    check_run("writing", "write after the end fails", write_after_the_end_fails);
    check_run("writing", "bytes keep their order for all sizes and windows",
              bytes_keep_their_order_for_all_sizes_and_windows);
    check_run("ends", "end of a tunnel open both ways cancels it", end_of_a_tunnel_open_both_ways_cancels_it);
    check_run("ends", "end of a tunnel that the client has ended sends end stream",
              end_of_a_tunnel_that_the_client_has_ended_sends_end_stream);
    check_run("ends", "end of a tunnel with unsent bytes cancels it", end_of_a_tunnel_with_unsent_bytes_cancels_it);
    check_run("ends", "end of a tunnel that the server has ended is a reset without an error",
              end_of_a_tunnel_that_the_server_has_ended_is_a_reset_without_an_error);
    check_run("ends", "abrupt end of a tunnel is a reset", abrupt_end_of_a_tunnel_is_a_reset);
    return check_end();
}
