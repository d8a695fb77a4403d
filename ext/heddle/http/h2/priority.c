#include "http/h2/session_state.h"
#include "http/text.h"

/*
 * A dictionary of structured fields (RFC 9651), of which two keys are known: `u`, a digit, and `i`, a boolean. Other
 * members are skipped.
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
    if (listed) { /* moved to the end of its new list */
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
