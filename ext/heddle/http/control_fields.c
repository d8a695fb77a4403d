#include "http/control_fields.h"

#include "http/fields.h"
#include "http/text.h"

static void note_connection(heddle_control_fields *controls, const char *at, const char *end)
{
    size_t size;
    const char *option;
    while ((option = heddle_next_element(&at, end, &size))) {
        if (heddle_is_word(option, size, "close"))
            controls->close = true;
        else if (heddle_is_word(option, size, "keep-alive"))
            controls->keep_alive = true;
        else if (heddle_is_word(option, size, "upgrade"))
            controls->upgrade_named = true;
    }
}

static void note_expectation(heddle_control_fields *controls, const char *at, const char *end)
{
    size_t size;
    const char *expectation;
    while ((expectation = heddle_next_element(&at, end, &size))) {
        if (heddle_is_word(expectation, size, "100-continue"))
            controls->continue_expected = true;
        else
            controls->more_expected = true;
    }
}

/*
 * A head may have two violations: a second Host, and a Content-Length that differs from an earlier one. Only the first
 * of them is recorded, because it determines the error that is reported.
 */
static void note_host(heddle_control_fields *controls, const heddle_field *field)
{
    if (!controls->has_host) {
        controls->has_host = true;
        controls->host = field->value;
    } else if (!controls->content_length.differs) {
        controls->second_host = true;
    }
}

void heddle_control_fields_note(heddle_control_fields *controls, const char *bytes, const heddle_field *field)
{
    const char *value = bytes + field->value.start, *end = value + field->value.size;
    switch (field->id) {
    case HEDDLE_FIELD_HOST:
        note_host(controls, field);
        break;
    case HEDDLE_FIELD_CONTENT_LENGTH:
        if (!controls->second_host || !controls->content_length.present)
            heddle_content_length_note(&controls->content_length, bytes, field);
        break;
    case HEDDLE_FIELD_TRANSFER_ENCODING:
        heddle_transfer_encoding_note(&controls->transfer_encoding, value, end);
        break;
    case HEDDLE_FIELD_CONNECTION:
        note_connection(controls, value, end);
        break;
    case HEDDLE_FIELD_EXPECT:
        note_expectation(controls, value, end);
        break;
    case HEDDLE_FIELD_UPGRADE: {
        size_t size;
        controls->upgrade_offered |= heddle_next_element(&value, end, &size) != NULL;
        break;
    }
    default:
        break;
    }
}

bool heddle_control_fields_keep_alive(const heddle_control_fields *controls, uint8_t minor)
{
    return !controls->close && (minor >= 1 || controls->keep_alive);
}
