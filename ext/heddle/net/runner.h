#pragma once

/* A runner is a pooled fiber that serves one work item after another. */

#include "net/runner_pool.h"
#include "net/work_item.h"

struct heddle_runner {
    heddle_sockets *sockets;
    VALUE object; /* the Ruby object of the sockets */
    heddle_fiber *fiber; /* NULL after it has ended */
    heddle_park *park;   /* its park while it waits for work */
    heddle_runner *next; /* in the list of idle runners or of serving runners */
    heddle_runner *previous; /* in the list of serving runners */
    const heddle_work_operations *operations; /* the operations of the work item that it serves */
    /* points to the Ruby object of the work item, such as the exchange; NULL, or *served is 0: there is no object */
    const VALUE *served;
    heddle_address_share *share; /* the address record that counts the work item as begun, or NULL */
    unsigned uses; /* how many work items it has begun to serve */
    heddle_quantum quantum; /* the quantum of the work item */
    heddle_account account; /* the time account of the work item */
    /* the account of its next request begins at the time at which its last account has ended (heddle_account_begin) */
    bool in_row;
    bool idle;     /* it is in the list of idle runners */
    bool summoned; /* heddle_runners_summon has woken or started it, and it has not run since */
    bool ending;   /* it ends after this item, or when it would wait for work */
};

/* Starts a new runner, which reads the ready list when its fiber runs. Raises an error if no fiber can be made. */
void heddle_runner_start(heddle_sockets *sockets);

/* Returns a description of the item that the runner serves, or nil. Any thread with the GVL may call this. */
VALUE heddle_runner_describe_object(const heddle_runner *runner);

/* -- runner_pool.c: the lists of idle and of serving runners ----------------------------------------------- */

void heddle_runners_add_idle(heddle_runner *runner);
/* Removes a runner from the list of idle runners. Called if other code than this pool has woken the runner. */
void heddle_runners_remove_idle(heddle_runner *runner);
void heddle_runners_start_serving(heddle_runner *runner);
void heddle_runners_stop_serving(heddle_runner *runner);
/*
 * Called if no fiber can be made now. Tries again to summon a runner after HEDDLE_RUNNERS_RETRY; until then the ready
 * items wait.
 */
void heddle_runners_summon_later(heddle_sockets *sockets);

void Init_heddle_runner(VALUE net);
