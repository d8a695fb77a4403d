#ifndef HEDDLE_HTTP_BODY_FILES_H
#define HEDDLE_HTTP_BODY_FILES_H

/*
 * The files of spooled bodies. They have no name, and only the process that made a file writes to it. To create a file,
 * to allocate its blocks and to free them costs more than to copy a body of a few megabytes. So a file that is no
 * longer needed is kept for 250 ms: the next body overwrites it. A body is never read beyond its own end. When the disk
 * is full, kept files are closed.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    HEDDLE_BODY_FILES_SPARE = 64,               /* the maximum of kept files */
    HEDDLE_BODY_FILES_SPARE_BYTES = 67108864,   /* the maximum of their sizes together */
    HEDDLE_BODY_FILES_SPARE_TIME = 250000000,   /* how long files are kept without any write or close, ns */
};

typedef struct heddle_body_file heddle_body_file;
struct heddle_body_file {
    heddle_body_file *next;
    int fd;
    bool shared;   /* a forked child may read it, too: it is never overwritten */
    bool failed;   /* a write to it has failed: it is not kept, for its blocks may be what the disk lacks */
    uint64_t size; /* the file's size in bytes, of its current or an earlier body */
    char folder[];
};

/* -- on the writer's thread --------------------------------------------------------------------------------------- */

/* Opens an empty file, or takes a kept one in this folder. 0 or an errno. */
int heddle_body_file_open(const char *folder, heddle_body_file **file);
/* Called when no body needs the file any more. */
void heddle_body_file_release(heddle_body_file *file);
void heddle_body_files_close_spares(void);

/* -- any thread --------------------------------------------------------------------------------------------------- */

bool heddle_body_files_any_spare(void);
void heddle_body_file_close(heddle_body_file *file);
/* Around a fork. The child keeps no files. */
void heddle_body_files_before_fork(void);
void heddle_body_files_after_fork(bool in_child);

#endif
