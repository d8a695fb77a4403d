#include "offload/policy.h"

#include "offload/library_judge.h"

#include <dlfcn.h>

/* Limits the table of functions, because a program may create any number of them (closures) at run time. */
enum { MOST = 4096, SLOTS = MOST * 2 };

typedef struct {
    char **names;
    size_t count;
} name_list;

static heddle_function *slots[SLOTS]; /* a hash table with open addressing, by address; entries are never removed */
static heddle_function *all[MOST];
static size_t count;
static heddle_function others = {.path = "", .library = "(others)", .in_place = true, .class = HEDDLE_LIBRARY_IN_PLACE,
                                .reason = "too many functions were called to keep a record of each"};
static name_list lists[HEDDLE_LISTS];
static const void *ruby, *ruby_base;
static heddle_function *unreported; /* the function whose stall is reported next, or NULL */

/* -- libraries ----------------------------------------------------------------------------------------------------- */

/* A cached judgement, because judging a library takes milliseconds. */
typedef struct {
    const void *base;
    heddle_judgement judgement;
} verdict;

static verdict *verdicts;
static size_t verdict_count;

static heddle_judgement judge_address(const void *base, const void *address)
{
    for (size_t i = 0; i < verdict_count; i++) {
        if (verdicts[i].base == base)
            return verdicts[i].judgement;
    }
    heddle_judgement judgement = heddle_library_judge(address, ruby);
    verdict *more = realloc(verdicts, (verdict_count + 1) * sizeof(*more));
    if (more) {
        verdicts = more;
        verdicts[verdict_count++] = (verdict){.base = base, .judgement = judgement};
    }
    return judgement;
}

bool heddle_policy_is_listed(heddle_policy_list list, const char *path)
{
    return heddle_library_listed(path, (const char *const *)lists[list].names, lists[list].count);
}

/*
 * Is the library on the list of known good libraries, and does it need only the libraries of its entry? An entry is
 * "name other another": the beginning of the library's file name, then the libraries that it may need. Sets `reason` if
 * it needs any other library.
 */
static bool is_known_good(const char *path, const void *address, char *reason, size_t size)
{
    const char *file = heddle_library_file(path);
    const name_list *good = &lists[HEDDLE_LIST_KNOWN_GOOD];
    for (size_t i = 0; i < good->count; i++) {
        const char *needs[16];
        size_t count = 0;
        char *words = strdup(good->names[i]), *rest = NULL;
        char *own = words ? strtok_r(words, " ", &rest) : NULL;
        bool named = own && strncmp(file, own, strlen(own)) == 0, tried = false;
        if (named) {
            char why[HEDDLE_JUDGEMENT_REASON] = "";
            for (char *word; count < sizeof(needs) / sizeof(needs[0]) && (word = strtok_r(NULL, " ", &rest));)
                needs[count++] = word;
            tried = heddle_library_needs_only(address, ruby, needs, count, why);
            snprintf(reason, size, "%s", why);
        }
        free(words);
        if (named)
            return tried;
    }
    return false;
}

const char *heddle_policy_class_name(heddle_library_class class)
{
    static const char *const names[] = {"denied", "in_place", "ruby", "known_good", "allowed", "judged_safe"};
    return names[class];
}

heddle_library_class heddle_policy_class(const char *path, const void *address, char *reason, size_t size)
{
    Dl_info info = {0};
    reason[0] = '\0';
    if (heddle_policy_is_listed(HEDDLE_LIST_DENIED, path))
        return HEDDLE_LIBRARY_DENIED;
    if (!address || !dladdr(address, &info)) {
        snprintf(reason, size, "the function does not belong to a library");
        return HEDDLE_LIBRARY_IN_PLACE;
    }
    if (info.dli_fbase == ruby_base)
        return HEDDLE_LIBRARY_RUBYS;
    if (heddle_policy_is_listed(HEDDLE_LIST_ALLOWED, path))
        return HEDDLE_LIBRARY_ALLOWED;
    if (is_known_good(path, address, reason, size))
        return HEDDLE_LIBRARY_KNOWN_GOOD;
    char untried[HEDDLE_JUDGEMENT_REASON];
    snprintf(untried, sizeof(untried), "%s", reason);
    heddle_judgement judgement = judge_address(info.dli_fbase, address);
    snprintf(reason, size, "%s", judgement.safe ? "" : untried[0] ? untried : judgement.reason);
    return judgement.safe ? HEDDLE_LIBRARY_JUDGED_SAFE : HEDDLE_LIBRARY_IN_PLACE;
}

/* Of libc, only the functions that neutral_functions.c lists as waiting are offloaded. */
static heddle_library_class class_in_libc(const heddle_function *function, char *reason, size_t size)
{
    if (heddle_policy_is_listed(HEDDLE_LIST_DENIED, function->path))
        return HEDDLE_LIBRARY_DENIED;
    if (function->symbol && heddle_libc_function_waits(function->symbol))
        return HEDDLE_LIBRARY_JUDGED_SAFE;
    snprintf(reason, size, "%s of libc may depend on the calling thread, or is quick",
             function->symbol ? function->symbol : "this function");
    return HEDDLE_LIBRARY_IN_PLACE;
}

static void classify_function(heddle_function *function)
{
    char reason[HEDDLE_JUDGEMENT_REASON] = "";
    function->class = heddle_library_is_libc(function->path)
                          ? class_in_libc(function, reason, sizeof(reason))
                          : heddle_policy_class(function->path, function->address, reason, sizeof(reason));
    free((char *)function->reason);
    function->reason = reason[0] ? strdup(reason) : NULL;
    function->in_place = function->class == HEDDLE_LIBRARY_DENIED || function->class == HEDDLE_LIBRARY_IN_PLACE;
    function->quick = heddle_policy_is_listed(HEDDLE_LIST_QUICK, function->path);
    function->carries_errors = function->class == HEDDLE_LIBRARY_KNOWN_GOOD ||
                               function->class == HEDDLE_LIBRARY_ALLOWED;
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

/*
 * Returns the only copy of this path, or NULL if out of memory. The copy is never freed: time accounts of requests
 * point to the library's name at its end, and tell libraries apart by these pointers.
 */
static const char *copy_path(const char *path)
{
    static char **paths;
    static size_t path_count;
    for (size_t i = 0; i < path_count; i++) {
        if (strcmp(paths[i], path) == 0)
            return paths[i];
    }
    char **more = realloc(paths, (path_count + 1) * sizeof(*more)), *copy = strdup(path);
    if (more)
        paths = more;
    if (more && copy)
        return paths[path_count++] = copy;
    free(copy);
    return NULL;
}

/* Finds the library that contains the function. Returns false if out of memory. */
static bool locate_function(heddle_function *function)
{
    Dl_info info = {0};
    if (!dladdr(function->address, &info))
        info = (Dl_info){0};
    const char *path = copy_path(info.dli_fname ? info.dli_fname : "");
    if (!path)
        return false;
    if (function->path != path)
        *function = (heddle_function){.address = function->address, .path = path, .symbol = function->symbol,
                                      .reason = function->reason};
    function->library = heddle_library_file(path);
    free((char *)function->symbol);
    function->base = info.dli_fbase;
    /* if the addresses differ, the symbol belongs to an exported function before this one */
    function->symbol = info.dli_saddr == function->address && info.dli_sname ? strdup(info.dli_sname) : NULL;
    classify_function(function);
    return true;
}

static heddle_function *add_function(void *address, size_t slot)
{
    heddle_function *function = count < MOST ? calloc(1, sizeof(*function)) : NULL;
    if (!function)
        return &others;
    function->address = address;
    if (!locate_function(function)) {
        free(function);
        return &others;
    }
    slots[slot] = function;
    all[count++] = function;
    return function;
}

heddle_function *heddle_function_record(void *address)
{
    uint64_t hash = ((uint64_t)(uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (size_t)(hash >> 32) & (SLOTS - 1);
    while (slots[slot]) {
        if (slots[slot]->address == address)
            return slots[slot];
        slot = (slot + 1) & (SLOTS - 1);
    }
    return add_function(address, slot);
}

void heddle_function_ran(heddle_function *function, bool offloaded, int64_t wall, int64_t cpu)
{
    bool first = function->calls++ == 0;
    int64_t most = 4 * (heddle_function_is_ruby(function) ? HEDDLE_QUICK_IN_RUBY_NS : HEDDLE_QUICK_NS);
    int64_t counted = wall < most ? wall : most;
    /* The average `pace` starts at 0, so that the first call counts little: with cold caches it is not typical. */
    function->pace += (counted - function->pace) / 8;
    /*
     * The average `wall` rises by half of the difference, but falls only by a sixteenth of it, so that a slow call has
     * an effect for a while.
     */
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

bool heddle_function_is_ruby(const heddle_function *function)
{
    return function->base == ruby_base;
}

void heddle_function_report_stall(heddle_function *function, int64_t wall)
{
    if (function->reported)
        return;
    if (wall > function->blocked_for)
        function->blocked_for = wall;
    unreported = function;
}

const heddle_function *heddle_policy_take_unreported(int64_t *blocked_for)
{
    for (size_t i = 0; !unreported && i < count; i++) {
        if (all[i]->blocked_for && !all[i]->reported)
            unreported = all[i];
    }
    heddle_function *function = unreported;
    unreported = NULL;
    if (!function || function->reported)
        return NULL;
    function->reported = true;
    *blocked_for = function->blocked_for;
    return function;
}

int heddle_policy_set_list(heddle_policy_list which, const char *const *names, size_t name_count)
{
    name_list *list = &lists[which];
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
        classify_function(all[i]);
    return 0;
}

void heddle_policy_set_ruby(const void *address)
{
    Dl_info info = {0};
    if (ruby || !dladdr(address, &info))
        return;
    ruby = address;
    ruby_base = info.dli_fbase;
}

void heddle_policy_relocate(void)
{
    verdict_count = 0;
    for (size_t i = 0; i < count; i++)
        locate_function(all[i]);
}

size_t heddle_function_count(void)
{
    return count;
}

const heddle_function *heddle_function_at(size_t index)
{
    return index < count ? all[index] : NULL;
}
