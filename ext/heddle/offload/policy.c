#include "offload/policy.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Closures that are made at run time must not fill the memory. */
enum { MOST = 4096, SLOTS = MOST * 2 };

typedef struct {
    char **names;
    size_t count;
} name_list;

static heddle_function *slots[SLOTS]; /* open addressing by address; nothing is ever removed */
static heddle_function *all[MOST];
static size_t count;
static heddle_function others = {.path = "", .library = "(others)"};
static name_list denied, quick;

bool heddle_library_listed(const char *path, const char *const *names, size_t name_count)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; i < name_count; i++) {
        if (names[i][0] && strncmp(file, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

bool heddle_policy_denied(const char *path)
{
    return heddle_library_listed(path, (const char *const *)denied.names, denied.count);
}

static void classify(heddle_function *function)
{
    function->denied = heddle_policy_denied(function->path);
    function->quick = heddle_library_listed(function->path, (const char *const *)quick.names, quick.count);
}

static heddle_function *add(void *address, size_t slot)
{
    heddle_function *function = count < MOST ? calloc(1, sizeof(*function)) : NULL;
    if (!function)
        return &others;
    Dl_info info = {0};
    if (!dladdr(address, &info))
        info = (Dl_info){0};
    char *path = strdup(info.dli_fname ? info.dli_fname : "");
    if (!path) {
        free(function);
        return &others;
    }
    const char *slash = strrchr(path, '/');
    *function = (heddle_function){
        .address = address, .base = info.dli_fbase, .path = path, .library = slash ? slash + 1 : path};
    /* Otherwise it is the name of some exported function that happens to lie before it. */
    if (info.dli_saddr == address && info.dli_sname)
        function->symbol = strdup(info.dli_sname);
    classify(function);
    slots[slot] = function;
    all[count++] = function;
    return function;
}

heddle_function *heddle_function_find(void *address)
{
    uint64_t hash = ((uint64_t)(uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (size_t)(hash >> 32) & (SLOTS - 1);
    while (slots[slot]) {
        if (slots[slot]->address == address)
            return slots[slot];
        slot = (slot + 1) & (SLOTS - 1);
    }
    return add(address, slot);
}

void heddle_function_ran(heddle_function *function, bool offloaded, int64_t wall, int64_t cpu)
{
    bool first = function->calls++ == 0;
    int64_t counted = wall < HEDDLE_QUICK_NS * 4 ? wall : HEDDLE_QUICK_NS * 4;
    /* From 0: the first call, with nothing in the caches, is no rule. */
    function->pace += (counted - function->pace) / 8;
    /* Up by half the difference, down by a sixteenth: one slow call is remembered for a while. */
    if (first)
        function->wall = wall;
    else if (wall > function->wall)
        function->wall += (wall - function->wall) / 2;
    else
        function->wall -= (function->wall - wall) / 16;
    if (offloaded && cpu >= 0 && wall > 0) {
        int ratio = (int)(cpu >= wall ? 1000 : cpu * 1000 / wall);
        function->cpu = function->measured ? function->cpu + (ratio - function->cpu) / 4 : ratio;
        function->measured = true;
    }
    function->offloaded += offloaded;
}

bool heddle_function_computes(const heddle_function *function)
{
    return function->cpu > 700 && function->wall > HEDDLE_QUICK_NS;
}

static int set_list(name_list *list, const char *const *names, size_t name_count)
{
    char **copies = calloc(name_count ? name_count : 1, sizeof(*copies));
    bool complete = copies != NULL;
    for (size_t i = 0; complete && i < name_count; i++)
        complete = (copies[i] = strdup(names[i])) != NULL;
    for (size_t i = 0; !complete && copies && i < name_count; i++)
        free(copies[i]);
    if (!complete) {
        free(copies);
        return -ENOMEM;
    }
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    *list = (name_list){.names = copies, .count = name_count};
    for (size_t i = 0; i < count; i++)
        classify(all[i]);
    return 0;
}

int heddle_policy_deny(const char *const *names, size_t name_count)
{
    return set_list(&denied, names, name_count);
}

int heddle_policy_quick(const char *const *names, size_t name_count)
{
    return set_list(&quick, names, name_count);
}

size_t heddle_function_count(void)
{
    return count;
}

const heddle_function *heddle_function_at(size_t index)
{
    return index < count ? all[index] : NULL;
}
