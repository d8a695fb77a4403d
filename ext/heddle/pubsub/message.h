#ifndef HEDDLE_PUBSUB_MESSAGE_H
#define HEDDLE_PUBSUB_MESSAGE_H

/*
 * A message on its way to the subscribers of this loop. It is on the C stack of the function that delivers it, which
 * keeps and pins its Strings; what a subscriber needs longer it has to mark, as an output queue does.
 */

#include <ruby.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HEDDLE_MESSAGE_FORMS = 8, /* framings in use at the same time */
};

typedef struct heddle_message heddle_message;

/* Encodes a message for the wire: a frozen String. It may raise NoMemoryError and nothing else. `key`: as given. */
typedef VALUE heddle_message_encoder(heddle_message *message, VALUE key, void *context);

struct heddle_message {
    const char *topic;
    size_t topic_size;
    char epoch[16]; /* its position is "epoch:offset" */
    uint64_t offset;
    uint64_t previous_offset; /* the topic has no messages between this offset and its own */
    /*
     * Messages before this one are lost, and nobody knows how many: what the client has made of them is out of date.
     * There is no payload, and the offset is that of the last message, after which the client goes on.
     */
    bool reset;
    bool newest; /* of all topics, when it was read: subscribers need not wait for others to send with it */
    VALUE payload; /* a frozen String; nil for a reset */
    struct {
        heddle_message_encoder *encoder;
        VALUE key, string;
    } forms[HEDDLE_MESSAGE_FORMS];
};

enum {
    HEDDLE_POSITION_SIZE = 36, /* "epoch:offset" with its NUL */
};

/* Writes "epoch:offset"; how many characters. */
size_t heddle_message_position(const heddle_message *message, char *text);

/*
 * The message as the encoder returns it: encoded once, the same frozen String for every subscriber with this key, a VALUE
 * that the caller keeps, or 0. Nothing may depend on the context, which the encoder gets, but what it needs for its work.
 * Add it to an output queue with heddle_output_add_string. 0 without memory.
 */
VALUE heddle_message_encoded(heddle_message *message, heddle_message_encoder *encoder, VALUE key, void *context);

#endif
