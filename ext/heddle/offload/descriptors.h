#pragma once

/*
 * Which descriptors are used by offloaded calls. The number of a descriptor that Ruby closes meanwhile stays taken
 * until the last of its calls has left, so no call acts on another file; each call is notified. Uses no Ruby.
 */

#include "system.h"

typedef struct heddle_descriptor_call heddle_descriptor_call;
struct heddle_descriptor_call {
    int fd;
    bool entered, closed;
    /* called when the descriptor is closed, on any thread, under a lock: must not block */
    void (*notify)(heddle_descriptor_call *call);
    heddle_descriptor_call *next, *previous;
};

/* Once. */
void heddle_descriptors_setup(void);

/*
 * Called before a call uses its descriptor. False: the descriptor is closed, and other calls still use it. With the
 * GVL, as heddle_descriptor_leave.
 */
bool heddle_descriptor_enter(heddle_descriptor_call *call);
/*
 * Called when a call no longer uses its descriptor; it is not notified afterwards. True: the descriptor was closed
 * meanwhile.
 */
bool heddle_descriptor_leave(heddle_descriptor_call *call);

bool heddle_descriptor_in_use(int fd);
/* Replaces close(2) for Ruby, on any thread, also in a child after vfork. Never waits for a call. */
int heddle_descriptor_close(int fd);
