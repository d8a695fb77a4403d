#pragma once

#include "net/connection.h"

/*
 * Sends a part of a file, and waits until the kernel has accepted all of it. `*place` is the connection, and becomes
 * NULL when the connection no longer exists. The connection's protocol must have `take_turn`. `timeout` is the longest
 * time without progress in ns (< 0: no limit). Raises IOError if the connection is closed or another fiber writes to
 * it, IO::TimeoutError after `timeout`, EOFError if the file is too short, and the SystemCallError of a broken
 * connection.
 */
void heddle_sendfile_all(heddle_connection *const *place, VALUE file, off_t offset, size_t length, int64_t timeout);
