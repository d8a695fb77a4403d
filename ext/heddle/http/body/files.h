#pragma once

/* The files of spooled bodies. They have no name, and only the process that made a file writes to it. */

#include "net/address.h"

enum {
    HEDDLE_BODY_FILES_MOST = 1024,              /* files of a process; their buffers have 64 MiB together */
    HEDDLE_BODY_FILES_SHARE = 4,                /* at most a fourth of its descriptors are such files */
    HEDDLE_BODY_FILES_CONNECTION_SHARE = 8,     /* one connection has at most an eighth of the files */
    HEDDLE_BODY_FILES_FEW = 4,                  /* an address with fewer files may use the last quarter */
};

/* How many files a process with this limit of descriptors may have. */
unsigned heddle_body_files_limit(uint64_t descriptors);
/* The limit of this process. */
unsigned heddle_body_files_most(void);
/*
 * Counts a file that will be opened for a client of this address (heddle_address_find_number); returns false if there
 * would be too many files, or the address would have more than half of the maximum. The last quarter is for addresses
 * with few files. Closing or uncounting the file undoes the count. Any thread may call these functions.
 */
bool heddle_body_files_count(uint16_t address);
/* Undoes the count of a file that will not be opened. */
void heddle_body_files_uncount(uint16_t address);

/* Opens an empty file in this folder. Returns its descriptor or -errno. */
int heddle_body_file_open(const char *folder);
/* Closes a counted file. */
void heddle_body_file_close(int fd, uint16_t address);
/* Called in a forked child, which has no files but the `inherited` ones of the application. */
void heddle_body_files_after_fork(unsigned inherited);
