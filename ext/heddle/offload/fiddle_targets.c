#include "offload/fiddle_targets.h"

#include "offload/library_judge.h"
#include "scheduler/take_errinfo.h"

/*
 * How many words of Fiddle's record are searched. In every version, the record has at least these four: cif, function,
 * values, result.
 */
enum { WORDS = 4 };

static enum { UNKNOWN, PROBING, KNOWN, NOT_FOUND } place = UNKNOWN;
static void *fiddle_caller; /* Fiddle's own function, which gets the record as its argument */
static int word;

static void probe_layout(void)
{
}

void *heddle_target_probe(void)
{
    return (void *)probe_layout;
}

bool heddle_is_fiddle_function(const heddle_function *function)
{
    static const char *const names[] = {"fiddle."};
    return heddle_library_listed(function->path, names, 1);
}

static void find_slot(void)
{
    int state = 0;
    VALUE before = rb_errinfo();
    place = PROBING;
    heddle_call_module_protected("Heddle::Offload::Switch", rb_intern("call_probe"), 0, NULL, &state);
    if (state)
        rb_set_errinfo(before);
    if (place == PROBING)
        place = NOT_FOUND;
}

static void note_slot(void *function, void *const *words)
{
    for (int i = 0; i < WORDS; i++) {
        if (words[i] != (void *)probe_layout)
            continue;
        word = i;
        fiddle_caller = function;
        place = KNOWN;
        return;
    }
}

heddle_function *heddle_target_find(const heddle_function *function, const void *argument)
{
    if (place == PROBING) {
        note_slot(function->address, argument);
        return NULL;
    }
    if (place == UNKNOWN)
        find_slot();
    if (place != KNOWN || function->address != fiddle_caller)
        return NULL;
    return heddle_function_record(((void *const *)argument)[word]);
}
