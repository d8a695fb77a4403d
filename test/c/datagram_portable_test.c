/* sources: net/datagram.c */
/* wrap: sendmmsg sendmsg clock_gettime */

/* The same tests where there is neither recvmmsg nor sendmmsg. */

#include "datagram_test.c"
