#ifndef HEDDLE_PUBSUB_PROCESS_HISTORY_H
#define HEDDLE_PUBSUB_PROCESS_HISTORY_H

/* The history that this process publishes to and reads from, which those that it forks have, too: Heddle::PubSub::History. */

#include "pubsub/history.h"

#include <ruby.h>

/* Made with the default limits if there is none. Raises. It stays as long as the process. */
heddle_history *heddle_process_history(void);

void Init_heddle_history(VALUE pubsub);

#endif
