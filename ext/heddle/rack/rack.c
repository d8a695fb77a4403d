#include "rack/rack.h"

#include "rack/env.h"

void Init_heddle_rack(VALUE heddle)
{
    Init_heddle_env(rb_define_module_under(heddle, "Rack"));
}
