#pragma once

/*
 * The files of spooled bodies. They have no name, and only the process that made a file writes to it. Creating a file,
 * and allocating and freeing its blocks, costs more than copying a body of a few megabytes. So a file that is no longer
 * needed is kept for 250 ms: the next body overwrites it. A body is never read beyond its own end. When the disk is
 * full, kept files are closed.
 */

#include "net/address.h"

enum {
    HEDDLE_BODY_FILES_MOST = 1024,              /* the most files of a process, whose buffers have 64 MiB together */
    HEDDLE_BODY_FILES_SHARE = 4,                /* at most a fourth of its descriptors are such files */
    HEDDLE_BODY_FILES_CONNECTION_SHARE = 8,     /* one connection has at most an eighth of the files */
    HEDDLE_BODY_FILES_SPARE = 64,               /* the maximum of kept files */
    HEDDLE_BODY_FILES_SPARE_BYTES = 67108864,   /* the maximum of their sizes together */
    HEDDLE_BODY_FILES_SPARE_TIME = 250000000,   /* how long files are kept without any write or close, ns */
};

typedef struct heddle_body_file heddle_body_file;
struct heddle_body_file {
    heddle_body_file *next;
    int fd;
    bool shared;   /* a forked child may read it, too, so it is never overwritten */
    uint16_t address; /* the number of its client's address (heddle_address_find_number) */
    bool failed;   /* a write has failed; the file is not kept, because the disk may need its blocks */
    uint64_t size; /* the file's size in bytes; it may be larger than the body if an earlier body was larger */
    char folder[];
};

/* -- counting; any thread ----------------------------------------------------------------------------------------- */

/* How many files, kept ones included, a process with this limit of descriptors may have. */
unsigned heddle_body_files_limit(uint64_t descriptors);
/* The limit of this process. */
unsigned heddle_body_files_most(void);
/*
 * Counts a file that will be opened for a client of this address (heddle_address_find_number); returns false if there
 * would be too many files, or the address would have more than half of the maximum. Releasing, closing or uncounting
 * the file undoes the count.
 */
bool heddle_body_files_count(uint16_t address);
/* Undoes the count of a file that will not be opened. */
void heddle_body_files_uncount(uint16_t address);

/* -- on the writer's thread --------------------------------------------------------------------------------------- */

/* Opens an empty file in this folder, or takes a kept one. Returns 0 or an errno. */
int heddle_body_file_open(const char *folder, heddle_body_file **file);
/* Called when no body needs the file any more: keeps or closes it. */
void heddle_body_file_release(heddle_body_file *file);
void heddle_body_files_close_spares(void);

/* -- any thread --------------------------------------------------------------------------------------------------- */

bool heddle_body_files_any_spare(void);
/* Like heddle_body_file_release, but always closes the file. */
void heddle_body_file_close(heddle_body_file *file);
/* Call these around a fork. The child keeps only the `inherited` files, which the application uses. */
void heddle_body_files_before_fork(void);
void heddle_body_files_after_fork(bool in_child, unsigned inherited);
