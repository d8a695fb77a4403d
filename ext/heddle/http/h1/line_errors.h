#pragma once

/* Functions that write the error message for a line that a parser has rejected. All return -1. */

#include "http/rejection.h"

/* Rejects a field line. `end` is the end of the received bytes: it may be within the line, or far after it. */
int heddle_reject_field(heddle_rejection *rejection, int status, const char *line, const char *end);

/* Rejects a request line. */
int heddle_reject_request_line(heddle_rejection *rejection, const char *line, const char *end);

/* Rejects a control character. The caller has checked that no LF follows a CR, and that no CR precedes an LF. */
int heddle_reject_control(heddle_rejection *rejection, int status, char character);
