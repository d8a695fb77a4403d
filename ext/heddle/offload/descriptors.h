#ifndef HEDDLE_OFFLOAD_DESCRIPTORS_H
#define HEDDLE_OFFLOAD_DESCRIPTORS_H

/*
 * Which descriptors offloaded calls use. A number that Ruby closes meanwhile stays taken until the last of those calls
 * has left, so that none of them ever acts on another file; each gets the close. Nothing here needs Ruby.
 */

#include <stdbool.h>

typedef struct heddle_descriptor_call heddle_descriptor_call;
struct heddle_descriptor_call {
    int fd;
    bool entered, closed;
    void (*notify)(heddle_descriptor_call *call); /* of the close; on any thread, under a lock: it must not block */
    heddle_descriptor_call *next, *previous;
};

/* Once. */
void heddle_descriptors_setup(void);

/*
 * A call is to use its descriptor. False: that is closed, and waits only for others to leave. Under the GVL, as
 * leaving.
 */
bool heddle_descriptor_enter(heddle_descriptor_call *call);
/* It uses it no more, and nobody tells it anything from here on. True: the descriptor was closed meanwhile. */
bool heddle_descriptor_leave(heddle_descriptor_call *call);

bool heddle_descriptor_in_use(int fd);
/* Ruby calls this instead of close(2), on any thread, also in a child after vfork. Never waits for a call to leave. */
int heddle_descriptor_close(int fd);

#endif
