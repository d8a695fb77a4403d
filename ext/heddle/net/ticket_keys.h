#ifndef HEDDLE_TICKET_KEYS_H
#define HEDDLE_TICKET_KEYS_H

/*
 * The keys of session tickets (RFC 5077, RFC 8446 4.6.1), in memory that a process shares with those that it forks: a
 * client resumes its session whichever of them it finds. One ring a process, as a key has to open what any of its
 * contexts, or those before them, has sealed.
 */

#include <ruby.h>

void Init_heddle_ticket_keys(VALUE tls);

#endif
