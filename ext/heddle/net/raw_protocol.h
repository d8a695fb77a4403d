#ifndef HEDDLE_RAW_PROTOCOL_H
#define HEDDLE_RAW_PROTOCOL_H

#include "net/connection.h"

/* The code that serves the connection is done with it: it waits for its next input. It may be gone afterwards. */
void heddle_raw_make_idle(heddle_connection *connection);

#endif
