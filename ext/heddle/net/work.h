#ifndef HEDDLE_WORK_H
#define HEDDLE_WORK_H

/*
 * A work item, which a runner serves, such as an HTTP exchange. A protocol embeds it in a record of its own. Runners,
 * admission and the reserve know nothing else of what is served.
 */

#include "net/admission.h"
#include "net/fate.h"
#include "net/link.h"

#include <ruby.h>

typedef struct heddle_connection heddle_connection;
typedef struct heddle_ready_list heddle_ready_list;
typedef struct heddle_work heddle_work;

/* All but `label` run in the loop, with the GVL. All but `object` never raise. */
typedef struct {
    /* Called in the item's runner: the argument for the block of the Sockets. May raise. */
    VALUE (*object)(heddle_work *work);
    /* In the runner: serves it in place of the block of the Sockets, which NULL leaves it to. May raise. */
    VALUE (*serve)(heddle_work *work, VALUE object);
    /*
     * Completes the item after the block has returned or raised: closes or aborts what it left open, and frees the
     * item. `object` is 0 where there is none.
     */
    void (*served)(heddle_work *work, VALUE object);
    /* Nobody is going to serve it. */
    HEDDLE_LAST_USE void (*reject)(heddle_work *work, heddle_overload why);
    /* Its request label, hashed; 0: unknown. NULL: there are no labels. On any thread that owns the connection. */
    uint32_t (*label)(const heddle_work *work);
    /* A description for a person, an Array or nil; NULL: there is none. On any thread, with the GVL. */
    VALUE (*describe)(VALUE object);
    /*
     * The same in a few words, without a NUL: the number of bytes. NULL: there are none. On any thread, with the GVL.
     */
    size_t (*summarize)(VALUE object, char *text, size_t size);
} heddle_work_operations;

struct heddle_work {
    const heddle_work_operations *operations;
    heddle_connection *connection; /* NULL once the connection is closed, or done with this item */
    heddle_link link;              /* in the ready list */
    heddle_ready_list *list;       /* where it waits; NULL: nowhere */
};

#endif
