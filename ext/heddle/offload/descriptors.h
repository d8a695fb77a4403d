#pragma once

/*
 * Keeps track of the descriptors that offloaded calls use. If Ruby closes such a descriptor, each call that uses it is
 * notified, but the descriptor is really closed only when the last of these calls has ended. Until then no other file
 * can get its number, so no call acts on a wrong file. Uses no Ruby.
 */

#include "system.h"

typedef struct heddle_descriptor_call heddle_descriptor_call;
struct heddle_descriptor_call {
    int fd;
    bool entered, closed;
    /* called when Ruby closes the descriptor, on any thread, with a lock held: must not block */
    void (*notify)(heddle_descriptor_call *call);
    heddle_descriptor_call *next, *previous;
};

/* Called once. */
void heddle_descriptors_setup(void);

/*
 * Called before a call uses its descriptor. Returns false if Ruby has closed the descriptor and other calls still use
 * it. This function and heddle_descriptor_leave are called with the GVL.
 */
bool heddle_descriptor_enter(heddle_descriptor_call *call);
/*
 * Called when a call no longer uses its descriptor; from then on the call is not notified. Returns true if Ruby has
 * closed the descriptor meanwhile.
 */
bool heddle_descriptor_leave(heddle_descriptor_call *call);

bool heddle_descriptor_in_use(int fd);
/*
 * Replaces close(2) in Ruby's own library. Called on any thread, also in a child process after vfork. Never waits for a
 * call.
 */
int heddle_descriptor_close(int fd);
