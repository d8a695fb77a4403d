#include "http/controls.h"

#include "http/fields.h"
#include "http/text.h"

static void note_connection(heddle_controls *controls, const char *at, const char *end)
{
    size_t size;
    const char *option;
    controls->has_connection = true;
    while ((option = heddle_next_element(&at, end, &size))) {
        if (heddle_is_word(option, size, "close"))
            controls->close = true;
        else if (heddle_is_word(option, size, "keep-alive"))
            controls->keep_alive = true;
        else if (heddle_is_word(option, size, "upgrade"))
            controls->upgrade_named = true;
    }
}

static void note_coding(heddle_controls *controls, const char *at, const char *end)
{
    size_t size;
    const char *coding;
    controls->has_coding = true;
    while ((coding = heddle_next_element(&at, end, &size))) {
        controls->codings++;
        controls->early_chunked |= controls->last_chunked;
        controls->last_chunked = heddle_is_word(coding, size, "chunked");
        controls->malformed_coding |= heddle_find_token_end(coding, coding + size) < coding + size;
    }
}

static void note_expectation(heddle_controls *controls, const char *at, const char *end)
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

static void note_host(heddle_controls *controls, const heddle_field *field)
{
    if (!controls->has_host) {
        controls->has_host = true;
        controls->host = field->value;
    } else if (!controls->other_length) {
        controls->second_host = true;
    }
}

static void note_length(heddle_controls *controls, const char *bytes, const heddle_field *field)
{
    if (!controls->has_length) {
        controls->has_length = true;
        controls->length = field->value;
    } else if (!controls->second_host && (controls->length.size != field->value.size ||
               memcmp(bytes + controls->length.start, bytes + field->value.start, field->value.size) != 0)) {
        controls->other_length = true;
    }
}

void heddle_controls_note(heddle_controls *controls, const char *bytes, const heddle_field *field)
{
    const char *value = bytes + field->value.start, *end = value + field->value.size;
    switch (field->id) {
    case HEDDLE_FIELD_HOST:
        note_host(controls, field);
        break;
    case HEDDLE_FIELD_CONTENT_LENGTH:
        note_length(controls, bytes, field);
        break;
    case HEDDLE_FIELD_TRANSFER_ENCODING:
        note_coding(controls, value, end);
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

int64_t heddle_content_length(const char *text, size_t size)
{
    int64_t length = 0;
    if (size == 0)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (!heddle_is(text[i], HEDDLE_DIGIT))
            return -1;
        if (length > (INT64_MAX - 9) / 10)
            length = INT64_MAX;
        else
            length = length * 10 + (text[i] - '0');
    }
    return length;
}

int heddle_controls_coding(const heddle_controls *controls, int malformed, int unknown, heddle_rejection *rejection)
{
    if (controls->codings == 1 && controls->last_chunked)
        return 0;
    if (controls->codings == 0 || controls->malformed_coding)
        return heddle_reject(rejection, malformed, "the Transfer-Encoding is not a list of codings");
    if (controls->early_chunked)
        return heddle_reject(rejection, malformed, "chunked is not the last transfer coding, or is applied twice");
    return heddle_reject(rejection, unknown, "the only transfer coding that this %s knows is chunked",
                         unknown == 501 ? "server" : "client");
}

bool heddle_controls_keep_alive(const heddle_controls *controls, uint8_t minor)
{
    return !controls->close && (minor >= 1 || controls->keep_alive);
}
