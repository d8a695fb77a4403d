#pragma once

/*
 * A message that is being delivered to the subscribers of this loop. During the delivery, its Strings are kept alive:
 * the fan-out marks them, or they are on the C stack of the delivering function. A subscriber must mark the Strings
 * that it keeps longer, as an output queue does.
 */

#include <ruby.h>

enum {
    HEDDLE_MESSAGE_FORMS = 8, /* encodings of a message that are kept for further subscribers */
};

typedef struct heddle_message heddle_message;

/*
 * Encodes a message into a frozen String. May raise only NoMemoryError. `key` and `context`: the arguments of
 * heddle_message_encoded.
 */
typedef VALUE heddle_message_encoder(heddle_message *message, VALUE key, void *context);

struct heddle_message {
    const char *topic;
    size_t topic_size;
    char epoch[16]; /* the message's position is "epoch:offset" */
    uint64_t offset;
    /* the topic has no message between this offset and `offset`; 0 outside of a broadcast */
    uint64_t previous_offset;
    /*
     * A reset: an unknown number of messages is lost, so the client's state is out of date. A reset has no payload. The
     * client continues from `offset`, the offset of the last message.
     */
    bool reset;
    /* it was the last message of all topics when it was read, so it need not be queued to be sent with later ones */
    bool newest;
    VALUE payload; /* a frozen String; nil for a reset */
    struct {
        heddle_message_encoder *encoder;
        VALUE key, string;
        void *context;
    } forms[HEDDLE_MESSAGE_FORMS];
};

enum {
    HEDDLE_POSITION_SIZE = 36, /* "epoch:offset" with its NUL */
};

/* Writes "epoch:offset" and a NUL; returns its length without the NUL. `text` has HEDDLE_POSITION_SIZE bytes. */
size_t heddle_position_write(const char *epoch, uint64_t offset, char *text);

/*
 * Returns the encoded message: the same frozen String for every subscriber with this encoder, key and context. The key
 * is a VALUE that the caller keeps alive, or 0. Add the String to an output queue with heddle_output_add_string.
 * Returns 0 when out of memory.
 */
VALUE heddle_message_encoded(heddle_message *message, heddle_message_encoder *encoder, VALUE key, void *context);
