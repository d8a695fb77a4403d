#pragma once

#include "http/websocket/frame_reader.h"

#include <ruby.h>

/* Returns the message as a String; a message of a topic as [topic, payload]. Frees the message. */
VALUE heddle_websocket_message_string(heddle_websocket_message *message);

void Init_heddle_websocket_codec(VALUE module);
