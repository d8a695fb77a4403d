#ifndef HEDDLE_OUTPUT_H
#define HEDDLE_OUTPUT_H

/* Writing whole: strings, files. */

#include "net/connection.h"

/*
 * Both wait; `*place` is the connection, and NULL once that is gone. `timeout`: ns for each step forward, < 0: none.
 * Raise IOError, IO::TimeoutError and what the system says of a broken connection.
 */

/* A String or an Array of Strings; returns the number of bytes. */
size_t heddle_output_write(heddle_connection *const *place, VALUE data, int64_t timeout);
void heddle_output_sendfile(heddle_connection *const *place, VALUE file, off_t offset, size_t length, int64_t timeout);

#endif
