#ifndef HEDDLE_HTTP_BODY_FILES_H
#define HEDDLE_HTTP_BODY_FILES_H

/*
 * The files of spooled bodies. They have no name, and only the process that made one writes to it. To create a file, to
 * allocate its blocks and to free them costs more than to copy a body of a few megabytes, so a file that is not needed
 * any more waits 250 ms for the next body, which overwrites it. Nobody reads beyond the end of the body it has.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    HEDDLE_BODY_FILES_SPARE = 64,               /* that many at most */
    HEDDLE_BODY_FILES_SPARE_BYTES = 67108864,   /* of all of them */
    HEDDLE_BODY_FILES_SPARE_TIME = 250000000,   /* nanoseconds without anything to write or close */
};

typedef struct heddle_body_file heddle_body_file;
struct heddle_body_file {
    heddle_body_file *next;
    int fd;
    bool shared;   /* a forked child has it, too, and may read it: never overwritten */
    uint64_t size; /* bytes, of whichever body */
    char folder[];
};

/* -- on the writer's thread --------------------------------------------------------------------------------------- */

/* An empty file, or a spare one of this folder. 0 or an errno. */
int heddle_body_file_open(const char *folder, heddle_body_file **file);
/* No body needs it any more. */
void heddle_body_file_release(heddle_body_file *file);
void heddle_body_files_close_spares(void);

/* -- any thread --------------------------------------------------------------------------------------------------- */

bool heddle_body_files_any_spare(void);
void heddle_body_file_close(heddle_body_file *file);
/* Around a fork. The child has no spare files. */
void heddle_body_files_before_fork(void);
void heddle_body_files_after_fork(bool in_child);

#endif
