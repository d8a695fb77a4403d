#pragma once

/*
 * Tracks which descriptors offloaded calls use. If Ruby closes such a descriptor, its number stays in use until the
 * last of its calls has ended, so that no call acts on another file. Each of these calls is notified. Uses no Ruby.
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
 * Called before a call uses its descriptor. Returns false if the descriptor was closed while other calls still use it.
 * Both this function and heddle_descriptor_leave are called with the GVL.
 */
bool heddle_descriptor_enter(heddle_descriptor_call *call);
/*
 * Called when a call no longer uses its descriptor; then it is no longer notified. Returns true if the descriptor was
 * closed meanwhile.
 */
bool heddle_descriptor_leave(heddle_descriptor_call *call);

bool heddle_descriptor_in_use(int fd);
/* Replaces close(2) for Ruby. Called on any thread, also in a child after vfork. Never waits for a call. */
int heddle_descriptor_close(int fd);
