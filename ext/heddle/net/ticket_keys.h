#pragma once

/*
 * The keys of session tickets (RFC 5077, RFC 8446 4.6.1), in memory that a process shares with those that it forks: a
 * client can resume its session in any of them. One ring of keys for a process, because a key has to decrypt the
 * tickets of all its contexts, also of earlier ones.
 */

#include <ruby.h>

void Init_heddle_ticket_keys(VALUE tls);
