#include "selector.h"

/*
 * The selectors in the order in which Heddle::Selector.best tries them, best first. docs/platforms.md lists the systems
 * on which each was tested.
 */
const heddle_selector_operations *const heddle_selectors[] = {
#ifdef __linux__
    &heddle_io_uring_operations,
    &heddle_epoll_operations,
#endif
#ifdef HEDDLE_KQUEUE
    &heddle_kqueue_operations,
#endif
    &heddle_select_operations,
    NULL,
};

const heddle_selector_operations *heddle_selector_find(const char *name)
{
    for (int i = 0; heddle_selectors[i]; i++) {
        if (strcmp(heddle_selectors[i]->name, name) == 0)
            return heddle_selectors[i];
    }
    return NULL;
}
