#pragma once

/* The history of this process and of those that it forks: Heddle::PubSub::History. */

#include "pubsub/history.h"

#include <ruby.h>

/* The history exists until the process ends. Raises Heddle::PubSub::UnreachableError if none was opened. */
heddle_history *heddle_process_history(void);

void Init_heddle_history(VALUE pubsub);
