/* sources: net/datagram.c */
/* wrap: sendmsg */

/* The same tests where there is no recvmmsg. */

#include "datagram_test.c"
