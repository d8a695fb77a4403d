#pragma once

#include "net/connection.h"
#include "net/fate.h"

/* Called by the code that has served the connection. From now on the connection waits for its next input. */
HEDDLE_LAST_USE void heddle_raw_make_idle(heddle_connection *connection);
