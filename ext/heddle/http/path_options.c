#include "http/path_options.h"

/* A prefix matches only whole segments: /rpc applies to /rpc and /rpc/x, but not to /rpcs. */
bool heddle_path_option_applies(const heddle_path_option *option, const heddle_exchange *exchange)
{
    const char *path = exchange->bytes + exchange->head.path.start;
    size_t size = exchange->head.path.size;
    for (unsigned i = 0; i < option->count; i++) {
        size_t length = strlen(option->prefixes[i]);
        if (size >= length && memcmp(path, option->prefixes[i], length) == 0 &&
            (size == length || option->prefixes[i][length - 1] == '/' || path[length] == '/'))
            return true;
    }
    return option->all;
}

bool heddle_path_option_has_path(const heddle_path_option *option, const heddle_exchange *exchange)
{
    size_t size = exchange->head.path.size;
    for (unsigned i = 0; i < option->count; i++) {
        if (strlen(option->prefixes[i]) == size &&
            memcmp(exchange->bytes + exchange->head.path.start, option->prefixes[i], size) == 0)
            return true;
    }
    return false;
}

void heddle_path_option_free(heddle_path_option *option)
{
    for (unsigned i = 0; i < option->count; i++)
        free(option->prefixes[i]);
    free(option->prefixes);
}
