#pragma once

#include <ruby.h>

void Init_heddle_net(VALUE heddle);
void Init_heddle_datagram(VALUE net);
void Init_heddle_shared_text(VALUE net);
void Init_heddle_server_names(VALUE tls);
void Init_heddle_ticket_keys(VALUE tls);
