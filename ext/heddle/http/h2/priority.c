#include "http/h2/session_state.h"
#include "http/text.h"

/* Priorities (RFC 9218): the Priority field, PRIORITY_UPDATE, and the PRIORITY frames of RFC 7540. */

/*
 * The text is a dictionary (RFC 9651). Two of its keys are known: `u`, a digit, and `i`, a boolean. All others are
 * ignored.
 */
void heddle_h2_parse_priority(const char *text, size_t size, uint8_t *urgency, bool *incremental)
{
    const char *at = text, *end = text + size, *member;
    size_t member_size;
    while ((member = heddle_next_element(&at, end, &member_size))) {
        const char *parameters = memchr(member, ';', member_size);
        if (parameters)
            member_size = (size_t)(parameters - member);
        if (member_size == 3 && memcmp(member, "u=", 2) == 0 && member[2] >= '0' && member[2] <= '7')
            *urgency = (uint8_t)(member[2] - '0');
        else if (member_size == 1 && *member == 'i')
            *incremental = true;
        else if (member_size == 4 && memcmp(member, "i=?", 3) == 0 && (member[3] == '0' || member[3] == '1'))
            *incremental = member[3] == '1';
    }
}

void heddle_h2_set_priority(heddle_h2_session *session, heddle_h2_stream *stream, uint8_t urgency, bool incremental)
{
    heddle_h2_enter(session);
    bool listed = stream->listed;
    if (listed) { /* removes the stream from its list; it is added to the new list below */
        int64_t window = stream->send_window;
        stream->send_window = 0;
        heddle_h2_list_stream(session, stream);
        stream->send_window = window;
    }
    stream->urgency = urgency < HEDDLE_H2_URGENCIES ? urgency : HEDDLE_H2_URGENCIES - 1;
    stream->incremental = incremental;
    if (listed)
        heddle_h2_list_stream(session, stream);
    heddle_h2_leave(session);
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

/* Ignores the priorities of RFC 7540 (RFC 9113, 5.3.2), but rejects a stream that depends on itself. */
void heddle_h2_take_priority(heddle_h2_session *session, uint32_t id, const uint8_t *payload)
{
    if (heddle_h2_get_31(payload) != id)
        return;
    if (heddle_h2_stream_state(session, id) == HEDDLE_H2_IDLE) /* an idle stream can't be reset */
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "a stream depends on itself");
    else
        heddle_h2_fail_stream(session, id, HEDDLE_H2_PROTOCOL_ERROR);
}

/* Remembers the priority of a stream that has not begun. */
static void keep_priority(heddle_h2_session *session, uint32_t id, uint8_t urgency, bool incremental)
{
    if (!heddle_h2_allocate_schedule(session)) {
        heddle_h2_fail_without_memory(session);
        return;
    }
    heddle_h2_schedule *schedule = session->schedule;
    unsigned index = schedule->early_next++ % HEDDLE_H2_EARLY_PRIORITIES;
    for (unsigned i = 0; i < HEDDLE_H2_EARLY_PRIORITIES; i++) {
        if (schedule->early_streams[i] == id)
            index = i;
    }
    schedule->early_streams[index] = id;
    schedule->early_bits[index] = (uint8_t)(urgency | (incremental ? HEDDLE_H2_URGENCIES : 0));
}

void heddle_h2_take_priority_update(heddle_h2_session *session, const uint8_t *payload, uint32_t size)
{
    uint32_t id = heddle_h2_get_31(payload);
    /* even ids belong to pushed streams, which this server never opens; a server must not send PRIORITY_UPDATE */
    if (id % 2 == 0 || session->is_client) {
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR,
                       session->is_client ? "a PRIORITY_UPDATE from the server"
                                          : "a PRIORITY_UPDATE for a stream that is not a request");
        return;
    }
    uint8_t urgency = HEDDLE_H2_DEFAULT_URGENCY;
    bool incremental = false;
    heddle_h2_parse_priority((const char *)payload + 4, size - 4, &urgency, &incremental);
    heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (stream)
        heddle_h2_set_priority(session, stream, urgency, incremental);
    else if (id > session->last_stream)
        keep_priority(session, id, urgency, incremental);
}
