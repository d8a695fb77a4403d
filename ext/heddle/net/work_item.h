#pragma once

/*
 * A work item, which a runner serves, such as an HTTP exchange. A protocol embeds it in its own record. Runners,
 * admission and the reserve know nothing else of the items.
 */

#include "net/admission.h"
#include "net/fate.h"
#include "net/link.h"

#include <ruby.h>

typedef struct heddle_address_share heddle_address_share;
typedef struct heddle_connection heddle_connection;
typedef struct heddle_ready_list heddle_ready_list;
typedef struct heddle_work heddle_work;

/* All operations but `label` run in the loop, with the GVL. Only `object` and `serve` may raise. */
typedef struct {
    bool waits_at_gate; /* the item begins only while the gate is open (request_gate.h); other items begin at once */
    /* Called in the item's runner: returns the argument for the block of the Sockets. May raise. */
    VALUE (*object)(heddle_work *work);
    /* Called in the runner: serves the item instead of the block. May raise. If NULL, the block serves the item. */
    VALUE (*serve)(heddle_work *work, VALUE object);
    /*
     * Called after the block has returned or raised: closes or aborts everything that the block left open, and frees
     * the item. `object` is 0 if there is none.
     */
    void (*served)(heddle_work *work, VALUE object);
    /* Has the client probably left while the item was queued? `now`: as heddle_clock_coarse. NULL means never. */
    bool (*is_abandoned)(heddle_work *work, int64_t now);
    /* Called instead of the others when the item will not be served. */
    HEDDLE_LAST_USE void (*reject)(heddle_work *work, heddle_overload why);
    /*
     * The hashed label of its request; 0 if it is unknown. NULL if there are no labels. Called on any thread that owns
     * the connection.
     */
    uint32_t (*label)(const heddle_work *work);
    /* A description for status commands, an Array or nil. May be NULL. Called on any thread, with the GVL. */
    VALUE (*describe)(VALUE object);
    /*
     * Writes the description as a short text without NUL; returns its size in bytes. May be NULL. Called on any thread,
     * with the GVL.
     */
    size_t (*summarize)(VALUE object, char *text, size_t size);
} heddle_work_operations;

struct heddle_work {
    const heddle_work_operations *operations;
    heddle_connection *connection; /* NULL once the connection is closed, or the item no longer needs it */
    heddle_link link;              /* in the ready list */
    heddle_ready_list *list;       /* the list in which it waits, or NULL */
    heddle_address_share *share;   /* the address that the item is counted for in `list`; NULL: it is not counted */
    uint32_t round;                /* its place in the list: see ready_list.c */
    /*
     * The item is a health check. Admission never delays or rejects it, unless there are too many
     * (heddle_admission_limit_probe). It comes before waiting items, and takes turns with items that may begin. It is
     * rejected once the server has announced its stop (heddle_sockets.leaving).
     */
    bool probe;
};
