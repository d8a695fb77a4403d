#pragma once

#include "http/websocket/frame_reader.h"

#include <ruby.h>

/* The message as a String, or as [topic, payload]; frees the message. */
VALUE heddle_websocket_message_string(heddle_websocket_message *message);

void Init_heddle_websocket_codec(VALUE module);
