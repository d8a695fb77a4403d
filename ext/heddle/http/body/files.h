#pragma once

/* The temporary files of request bodies. They have no name. Only the process that created a file writes to it. */

#include "net/address.h"

enum {
    HEDDLE_BODY_FILES_MOST = 1024,              /* the limit of a process; the buffers of 1024 files use 64 MiB */
    HEDDLE_BODY_FILES_SHARE = 4,                /* the files use at most a quarter of the process's descriptors */
    HEDDLE_BODY_FILES_CONNECTION_SHARE = 8,     /* one connection uses at most an eighth of the files */
    HEDDLE_BODY_FILES_FEW = 4,                  /* only addresses with fewer files may use the limit's last quarter */
};

/* Returns how many of these files a process with this limit of descriptors may open. */
unsigned heddle_body_files_limit(uint64_t descriptors);
/* Returns how many of these files this process may open. */
unsigned heddle_body_files_most(void);
/*
 * Counts a file that will be opened for a client with this address number (heddle_address_find_number). Returns false
 * and counts nothing if there are too many files, or if the address already has half of the maximum. The last quarter
 * of the maximum is reserved for addresses with fewer than HEDDLE_BODY_FILES_FEW files. heddle_body_file_close and
 * heddle_body_files_uncount undo the count. Any thread may call these functions.
 */
bool heddle_body_files_count(uint16_t address);
/* Returns how many of these files are open in this process. */
unsigned heddle_body_files_open(void);
/* Undoes the count of a file that will not be opened. */
void heddle_body_files_uncount(uint16_t address);

/* Creates an empty file in this folder. Returns its descriptor or -errno. */
int heddle_body_file_open(const char *folder);
/* Closes a counted file and uncounts it. */
void heddle_body_file_close(int fd, uint16_t address);
/*
 * Resets the counts in a forked child. `inherited`: the number of files that the child keeps open, because the
 * application uses them.
 */
void heddle_body_files_after_fork(unsigned inherited);
