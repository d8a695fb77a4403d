#ifndef HEDDLE_HTTP_FAULT_H
#define HEDDLE_HTTP_FAULT_H

/*
 * Words for what is wrong with a line that a parser has refused: whether to refuse is decided elsewhere. Each answers
 * -1.
 */

#include "http/rejection.h"

/* A header line, from its start to `end`, which may be far behind it or cut it short. */
int heddle_field_fault(heddle_rejection *rejection, int status, const char *line, const char *end);

/* A request line. */
int heddle_request_line_fault(heddle_rejection *rejection, const char *line, const char *end);

/* The control character itself; `next` is what follows a CR. */
int heddle_control_fault(heddle_rejection *rejection, int status, char character);

#endif
