#include "scheduler/layer_hooks.h"

heddle_layer_hooks heddle_hooks;
_Atomic int heddle_watch_asleep;
bool heddle_stalls_pending, heddle_preempting, heddle_reporting_callbacks;
