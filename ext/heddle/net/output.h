#ifndef HEDDLE_OUTPUT_H
#define HEDDLE_OUTPUT_H

/* Writing whole: strings, files. */

#include "net/connection.h"

/* A String or an Array of Strings; how many bytes it was. `timeout` in ns for each step forward, < 0: none. */
size_t heddle_output_write(heddle_handle *handle, VALUE data, int64_t timeout);
void heddle_output_sendfile(heddle_handle *handle, VALUE file, off_t offset, size_t length, int64_t timeout);

#endif
