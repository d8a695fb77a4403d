#include "net/net.h"

#include "net/board_ruby.h"
#include "net/networks.h"
#include "net/runner.h"
#include "net/sockets.h"
#include "net/wipe.h"

void Init_heddle_net(VALUE heddle)
{
    VALUE net = rb_define_module_under(heddle, "Net");
    Init_heddle_wipe();
    Init_heddle_runner(net);
    Init_heddle_connection(net);
    Init_heddle_board(net);
    Init_heddle_sockets(net);
    Init_heddle_networks(net);
    Init_heddle_handshake(net);
}
