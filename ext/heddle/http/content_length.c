#include "http/content_length.h"

#include "http/text.h"

void heddle_content_length_note(heddle_content_length *length, const char *bytes, const heddle_field *field)
{
    if (!length->present) {
        length->present = true;
        length->value = field->value;
    } else if (length->value.size != field->value.size ||
               memcmp(bytes + length->value.start, bytes + field->value.start, field->value.size) != 0) {
        length->differs = true;
    }
}

int64_t heddle_content_length_parse(const char *text, size_t size)
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

int64_t heddle_content_length_read(const heddle_content_length *length, const char *bytes)
{
    return heddle_content_length_parse(bytes + length->value.start, length->value.size);
}
