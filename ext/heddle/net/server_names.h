#pragma once

/*
 * Heddle::Net::TLS::ServerNames: the context of each host name (RFC 6066, 3), chosen before the library looks at the
 * client's ticket. Its own callback for names comes later, when a session of another name may be resumed already.
 */

#include <ruby.h>

void Init_heddle_server_names(VALUE tls);
