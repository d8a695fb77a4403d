#ifndef HEDDLE_RAW_PROTOCOL_H
#define HEDDLE_RAW_PROTOCOL_H

#include "net/connection.h"
#include "net/fate.h"

/* Called by the code that has served the connection: it waits for its next input. */
HEDDLE_LAST_USE void heddle_raw_make_idle(heddle_connection *connection);

#endif
