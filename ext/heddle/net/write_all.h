#pragma once

/* Writes strings and files to a connection, completely. */

#include "net/connection.h"

/*
 * Both functions wait. `*place` is the connection, or NULL once it is gone. `timeout`: the longest time without
 * progress in ns, < 0: none. They raise IOError, IO::TimeoutError and the SystemCallError of a broken connection.
 */

/* A String or an Array of Strings; returns the number of bytes. */
size_t heddle_write_all(heddle_connection *const *place, VALUE data, int64_t timeout);
void heddle_sendfile_all(heddle_connection *const *place, VALUE file, off_t offset, size_t length, int64_t timeout);
