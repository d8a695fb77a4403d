/* Defines the classes of Heddle::Rack that are written in C. */

#include "binding.h"

#include "rack/env.h"
#include "rack/exchange.h"

void Init_heddle_rack(VALUE heddle)
{
    VALUE rack = rb_define_module_under(heddle, "Rack");
    Init_heddle_env(rack);
    Init_heddle_rack_exchange(rack);
}
