#pragma once

/* Error messages for a line that a parser has rejected; the parser has decided that before. All return -1. */

#include "http/rejection.h"

/* A field line, from its start to `end`, which may be far behind it or within it. */
int heddle_reject_field(heddle_rejection *rejection, int status, const char *line, const char *end);

/* A request line. */
int heddle_reject_request_line(heddle_rejection *rejection, const char *line, const char *end);

/* For a control character; `next` is the character after a CR. */
int heddle_reject_control(heddle_rejection *rejection, int status, char character);
