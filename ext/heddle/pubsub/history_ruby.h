#pragma once

/* Heddle::PubSub::History: the pub/sub history that this process shares with other processes of its server. */

#include "pubsub/history.h"

#include <ruby.h>

/*
 * Returns the history, which exists until the process ends. Raises Heddle::PubSub::UnreachableError if there is none.
 */
heddle_history *heddle_process_history(void);

void Init_heddle_history(VALUE pubsub);
