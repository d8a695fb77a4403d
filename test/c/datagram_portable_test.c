/* sources: net/datagram.c */
/* wrap: sendmmsg sendmsg */

/* The same tests where there is neither recvmmsg nor sendmmsg. */

#include "datagram_test.c"
