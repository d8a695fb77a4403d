#pragma once

/*
 * A work item is something that a runner (a pooled fiber) serves, such as an HTTP exchange or a WebSocket's event. A
 * protocol embeds the work item in a record of its own. Runners, admission and the reserve use nothing else of this
 * record.
 */

#include "net/admission.h"
#include "net/fate.h"
#include "net/link.h"

#include <ruby.h>

typedef struct heddle_address_share heddle_address_share;
typedef struct heddle_connection heddle_connection;
typedef struct heddle_ready_list heddle_ready_list;
typedef struct heddle_work heddle_work;

/*
 * All operations except `label`, `describe` and `summarize` run in the loop, with the GVL. Only `object` and `serve`
 * may raise.
 */
typedef struct {
    bool waits_at_gate; /* the items are requests, which begin only while the gate is open (request_gate.h) */
    /* Called in the runner. Returns the item's Ruby object: the argument for `serve` or the block. May raise. */
    VALUE (*object)(heddle_work *work);
    /* Called in the runner. Serves the item. May raise. NULL: the block of heddle_sockets serves the item. */
    VALUE (*serve)(heddle_work *work, VALUE object);
    /*
     * Called after the item was served, also if that has raised. Closes or aborts everything that was left open, and
     * frees the item. `object` is 0 if the operation `object` has raised.
     */
    void (*served)(heddle_work *work, VALUE object);
    /*
     * Returns whether the client has probably left while the item was queued. `now` is from heddle_clock_coarse. If
     * this operation is NULL, the item is served even if the client has left.
     */
    bool (*is_abandoned)(heddle_work *work, int64_t now);
    /* Called instead of `object`, `serve` and `served` if the item will not be served. */
    HEDDLE_LAST_USE void (*reject)(heddle_work *work, heddle_overload why);
    /*
     * Returns the hash of the request's label (method and path without IDs); 0 if the label is unknown. Called on the
     * thread that owns the connection. If this operation is NULL, the items have no labels.
     */
    uint32_t (*label)(const heddle_work *work);
    /* Returns a description for status commands: an Array or nil. May be NULL. Called on any thread with the GVL. */
    VALUE (*describe)(VALUE object);
    /*
     * Writes the description as a short text without NUL. Returns its size in bytes. May be NULL. Called on any thread
     * with the GVL.
     */
    size_t (*summarize)(VALUE object, char *text, size_t size);
} heddle_work_operations;

struct heddle_work {
    const heddle_work_operations *operations;
    heddle_connection *connection; /* NULL after the connection is closed, or if the item no longer needs it */
    heddle_link link;              /* in `list` */
    heddle_ready_list *list;       /* the list in which it waits, or NULL */
    /* the record of the address that counts the item while it is in `list`; NULL: it is not counted */
    heddle_address_share *share;
    uint32_t round;                /* the round that decides its place in the list: see ready_list.c */
    /*
     * The item is a health check. Admission neither delays nor rejects it, unless there are too many health checks
     * (heddle_admission_limit_probe), or the server has announced its stop (`leaving` of heddle_sockets). A health
     * check begins even if other items must wait. If other items may begin, too, health checks and other items take
     * turns.
     */
    bool probe;
};
