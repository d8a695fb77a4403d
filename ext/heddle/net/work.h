#pragma once

/*
 * A work item, which a runner serves, such as an HTTP exchange. A protocol embeds it in its own record. Runners,
 * admission and the reserve know only this of what they serve.
 */

#include "net/admission.h"
#include "net/fate.h"
#include "net/link.h"

#include <ruby.h>

typedef struct heddle_connection heddle_connection;
typedef struct heddle_ready_list heddle_ready_list;
typedef struct heddle_work heddle_work;

/* All but `label` run in the loop, with the GVL. All but `object` and `serve` never raise. */
typedef struct {
    bool waits_at_gate; /* such an item begins when the gate is open (gate.h), others at once */
    /* Called in the item's runner: returns the argument for the block of the Sockets. May raise. */
    VALUE (*object)(heddle_work *work);
    /* Called in the runner: serves the item instead of the block. NULL: the block serves it. May raise. */
    VALUE (*serve)(heddle_work *work, VALUE object);
    /*
     * Called after the block has returned or raised: closes or aborts what it left open, and frees the item. `object`
     * is 0 where there is none.
     */
    void (*served)(heddle_work *work, VALUE object);
    /* Has the client probably left while the item was queued? `now`: as heddle_clock_coarse. NULL: never. */
    bool (*is_abandoned)(heddle_work *work, int64_t now);
    /* Called instead when the item will not be served. */
    HEDDLE_LAST_USE void (*reject)(heddle_work *work, heddle_overload why);
    /*
     * The hashed label of its request; 0: unknown. NULL: there are no labels. On any thread that owns the connection.
     */
    uint32_t (*label)(const heddle_work *work);
    /* A description for status commands, an Array or nil. May be NULL. On any thread, with the GVL. */
    VALUE (*describe)(VALUE object);
    /* The same as a short text without NUL; returns its size in bytes. May be NULL. On any thread, with the GVL. */
    size_t (*summarize)(VALUE object, char *text, size_t size);
} heddle_work_operations;

struct heddle_work {
    const heddle_work_operations *operations;
    heddle_connection *connection; /* NULL once the connection is closed, or the item no longer needs it */
    heddle_link link;              /* in the ready list */
    heddle_ready_list *list;       /* the list in which it waits, or NULL */
    /*
     * The request of a health check: admission never delays or rejects it, and it comes before all other items. It is
     * rejected once the server says that it stops (heddle_sockets.leaving).
     */
    bool probe;
};
