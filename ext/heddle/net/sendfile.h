#pragma once

#include "net/connection.h"

/*
 * Sends a part of a file. Waits. `*place` is the connection, or NULL once it is gone; its protocol takes turns.
 * `timeout`: the longest time without progress in ns, < 0: none. Raises IOError, IO::TimeoutError and the
 * SystemCallError of a broken connection.
 */
void heddle_sendfile_all(heddle_connection *const *place, VALUE file, off_t offset, size_t length, int64_t timeout);
