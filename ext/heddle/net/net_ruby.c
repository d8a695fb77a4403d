/* Defines the classes of Heddle::Net that are written in C. */

#include "net/net.h"

#include "net/scoreboard_ruby.h"
#include "net/networks.h"
#include "net/outbound.h"
#include "net/runner.h"
#include "net/sockets.h"
#include "net/fiber_reset.h"

void Init_heddle_net(VALUE heddle)
{
    VALUE net = rb_define_module_under(heddle, "Net");
    Init_heddle_fiber_reset();
    Init_heddle_runner(net);
    Init_heddle_scoreboard(net);
    Init_heddle_sockets(net);
    Init_heddle_networks(net);
    Init_heddle_shared_text(net);
    Init_heddle_handshake(net);
    Init_heddle_outbound(net);
    Init_heddle_datagram(net);
}
