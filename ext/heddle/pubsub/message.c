#include "pubsub/message.h"

#include "scheduler/take_errinfo.h"

size_t heddle_position_write(const char *epoch, uint64_t offset, char *text)
{
    int size = snprintf(text, HEDDLE_POSITION_SIZE, "%.12s:%" PRIu64, epoch, offset);
    return size < HEDDLE_POSITION_SIZE ? (size_t)size : HEDDLE_POSITION_SIZE - 1;
}

typedef struct {
    heddle_message *message;
    heddle_message_encoder *encoder;
    VALUE key;
    void *context;
} encoding;

static VALUE encode_message(VALUE data)
{
    const encoding *encoding = (void *)data;
    return encoding->encoder(encoding->message, encoding->key, encoding->context);
}

VALUE heddle_message_encoded(heddle_message *message, heddle_message_encoder *encoder, VALUE key, void *context)
{
    int form = 0;
    while (form < HEDDLE_MESSAGE_FORMS && message->forms[form].encoder &&
           (message->forms[form].encoder != encoder || message->forms[form].key != key ||
            message->forms[form].context != context))
        form++;
    if (form < HEDDLE_MESSAGE_FORMS && message->forms[form].encoder)
        return message->forms[form].string;
    encoding encoding = {message, encoder, key, context};
    int state;
    VALUE string = rb_protect(encode_message, (VALUE)&encoding, &state);
    if (state) {
        heddle_take_errinfo();
        return 0;
    }
    if (form < HEDDLE_MESSAGE_FORMS) {
        message->forms[form].string = string;
        message->forms[form].encoder = encoder;
        message->forms[form].key = key;
        message->forms[form].context = context;
    }
    return string;
}
