#ifdef __linux__

#include "uring_spare.h"

static struct {
    pthread_once_t once;
    pthread_key_t key;
    bool usable;
    _Atomic bool allowed;
} spares = {.once = PTHREAD_ONCE_INIT};

static void begin_in_child(void)
{
    spares.allowed = false; /* the thread may enter a sandbox before it needs another ring */
    heddle_selector *selector = heddle_spare_acquire();
    if (selector)
        selector->operations->abandon(selector);
}

static void create_key(void)
{
    spares.usable = pthread_key_create(&spares.key, heddle_uring_close_spare) == 0 &&
                    pthread_atfork(NULL, NULL, begin_in_child) == 0;
}

void heddle_spare_prepare(void)
{
    pthread_once(&spares.once, create_key);
}

heddle_selector *heddle_spare_acquire(void)
{
    heddle_selector *selector = spares.usable ? pthread_getspecific(spares.key) : NULL;
    if (selector)
        pthread_setspecific(spares.key, NULL);
    return selector;
}

bool heddle_spare_keep(heddle_selector *selector)
{
    return spares.usable && !pthread_getspecific(spares.key) && pthread_setspecific(spares.key, selector) == 0;
}

bool heddle_spare_is_allowed(void)
{
    return spares.allowed;
}

void heddle_spare_set_allowed(bool allowed)
{
    spares.allowed = allowed && spares.usable;
}

#endif
