#pragma once

/* The history of this process and of those that it forks: Heddle::PubSub::History. */

#include "pubsub/history.h"

#include <ruby.h>

/* Raises Heddle::PubSub::UnreachableError if none has been opened. Exists until the process ends. */
heddle_history *heddle_process_history(void);

void Init_heddle_history(VALUE pubsub);
