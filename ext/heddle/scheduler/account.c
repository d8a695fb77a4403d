#include "scheduler/account.h"

const char *const heddle_account_names[HEDDLE_SPENT_PARTS] = {
    "proxy",    "received", "queued", "running", "ready", "preempted", "gc",   "offloaded", "checkout", "query",
    "http",     "redis",    "dns",    "sleep",   "lock",  "process",   "file", "io",        "client",   "thread",
};

bool heddle_accounting;
int64_t heddle_collected;
void (*heddle_account_record)(const heddle_spender *spender, int64_t now);

void heddle_account_begin(heddle_account *account, heddle_spender *spender, unsigned request, bool in_row)
{
    memset(account, 0, account->waited ? sizeof(*account) : offsetof(heddle_account, parts[HEDDLE_SPENT_GC + 1]));
    account->request = request;
    account->owner = spender;
    *spender = (heddle_spender){
        .account = account,
        .request = request,
        .doing = HEDDLE_SPENT_RUNNING,
        .since = in_row ? spender->since : heddle_clock_now(),
        .collected = in_row ? spender->collected : heddle_collected,
    };
    account->began = spender->since;
}

void heddle_account_count_library(heddle_account *account, const char *name, int64_t spent)
{
    for (int i = 0; i < HEDDLE_ACCOUNT_LIBRARIES; i++) {
        if (account->libraries[i].name && account->libraries[i].name != name)
            continue;
        account->libraries[i].name = name;
        account->waited = true;
        account->libraries[i].spent += spent;
        return;
    }
}

static int64_t complete_parts(const heddle_account *account, int64_t now, int64_t parts[HEDDLE_SPENT_PARTS],
                              int64_t *other)
{
    heddle_spender_add(account->owner, parts, now);
    /*
     * In mode thread, the time that the application's thread accounts for is moved from HEDDLE_SPENT_THREAD to other
     * parts. If the runner's fiber spent some of that time otherwise, HEDDLE_SPENT_THREAD becomes negative. Then the
     * excess is subtracted from the next part in this list. If that part becomes negative, too, the rest is subtracted
     * from the part after it, and so on.
     */
    static const heddle_spent BESIDE[] = {HEDDLE_SPENT_THREAD, HEDDLE_SPENT_READY, HEDDLE_SPENT_CLIENT,
                                          HEDDLE_SPENT_RUNNING, HEDDLE_SPENT_GC};
    enum { LAST = sizeof(BESIDE) / sizeof(*BESIDE) - 1 };
    for (int i = 0; i < LAST && parts[BESIDE[i]] < 0; i++) {
        parts[BESIDE[i + 1]] += parts[BESIDE[i]];
        parts[BESIDE[i]] = 0;
    }
    if (parts[BESIDE[LAST]] < 0)
        parts[BESIDE[LAST]] = 0;
    int64_t total = now - account->began, left = total;
    for (int part = HEDDLE_SPENT_RECEIVED; part < HEDDLE_SPENT_PARTS; part++)
        left -= parts[part];
    *other = left > 0 ? left : 0;
    return total;
}

int64_t heddle_account_read(const heddle_account *account, int64_t now, int64_t parts[HEDDLE_SPENT_PARTS],
                            int64_t *other)
{
    memcpy(parts, account->parts, sizeof(account->parts));
    return complete_parts(account, now, parts, other);
}

int64_t heddle_account_end(heddle_account *account, int64_t now, int64_t *other)
{
    int64_t total = complete_parts(account, now, account->parts, other);
    if (heddle_account_record)
        heddle_account_record(account->owner, now);
    account->owner->since = now;
    account->owner->collected = heddle_collected;
    account->request = 0;
    return total;
}
