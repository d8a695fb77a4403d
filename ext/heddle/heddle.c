/* The entry point of the extension. Calls the Init function of each layer, which defines the layer's Ruby classes. */

#include "binding.h"
#include "concurrency/concurrency.h"
#include "http/http.h"
#include "net/net.h"
#include "preempt/preempt.h"
#include "scheduler/native_callbacks.h"

RUBY_FUNC_EXPORTED void Init_heddle(void)
{
    rb_ext_ractor_safe(true);
    VALUE heddle = rb_define_module("Heddle");
    Init_heddle_selector(heddle);
    Init_heddle_scheduler(heddle);
    Init_heddle_native_callbacks(heddle);
    Init_heddle_callback_report(heddle);
    Init_heddle_offload(heddle);
    Init_heddle_preempt(heddle);
    Init_heddle_concurrency(heddle);
    Init_heddle_net(heddle);
    Init_heddle_pubsub(heddle);
    Init_heddle_http(heddle);
    Init_heddle_cable();
    Init_heddle_processes(heddle);
    Init_heddle_rack(heddle);
}
