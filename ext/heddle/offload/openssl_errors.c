#include "offload/openssl_errors.h"

#include <dlfcn.h>

#include "system.h"

/* Constants of openssl/err.h since 3.0. They are defined here so that OpenSSL's headers are not needed. */
enum { TEXT_STRING = 0x02, LIBRARY_SYSTEM = 2 };

typedef struct {
    unsigned long code;
    int line;
    char *file, *function, *data; /* copies; data is NULL if there is none */
} error;

struct heddle_openssl_errors {
    size_t count;
    error errors[16]; /* as many as OpenSSL keeps for a thread */
};

static struct {
    unsigned long (*peek)(void);
    unsigned long (*get)(const char **file, int *line, const char **function, const char **data, int *flags);
    void (*new_error)(void);
    void (*set_debug)(const char *file, int line, const char *function);
    void (*set_error)(int library, int reason, const char *format, ...);
} openssl;

static bool load_functions(void)
{
    static bool loaded;
    if (loaded)
        return true;
    void *library = dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_NOLOAD); /* kept open: Ruby never unloads it either */
    if (!library)
        return false;
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"ERR_peek_error", &openssl.peek},         {"ERR_get_error_all", &openssl.get},
        {"ERR_new", &openssl.new_error},           {"ERR_set_debug", &openssl.set_debug},
        {"ERR_set_error", &openssl.set_error},
    };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function) {
            dlclose(library);
            return false;
        }
        memcpy(functions[i].place, &function, sizeof(function));
    }
    return loaded = true;
}

static heddle_openssl_errors *take_errors(void)
{
    heddle_openssl_errors *taken = NULL;
    while (openssl.peek()) {
        const char *file = NULL, *function = NULL, *data = NULL;
        int line = 0, flags = 0;
        unsigned long code = openssl.get(&file, &line, &function, &data, &flags);
        if (!taken)
            taken = calloc(1, sizeof(*taken));
        if (!taken || taken->count == sizeof(taken->errors) / sizeof(taken->errors[0]))
            continue;
        taken->errors[taken->count++] = (error){
            .code = code,
            .line = line,
            .file = strdup(file ? file : ""),
            .function = strdup(function ? function : ""),
            .data = data && data[0] && (flags & TEXT_STRING) ? strdup(data) : NULL,
        };
    }
    return taken;
}

heddle_openssl_errors *(*heddle_openssl_errors_taker(void))(void)
{
    return load_functions() ? take_errors : NULL;
}

/* Splits the code like ERR_GET_LIB and ERR_GET_REASON: in a system error, all bits but the highest are errno. */
static void put_error(const error *one)
{
    bool of_system = one->code & ((unsigned long)1 << 31);
    int library = of_system ? LIBRARY_SYSTEM : (int)(one->code >> 23 & 0xff);
    int reason = (int)(of_system ? one->code & 0x7fffffff : one->code & 0x7fffff);
    openssl.new_error();
    openssl.set_debug(one->file ? one->file : "", one->line, one->function ? one->function : "");
    if (one->data)
        openssl.set_error(library, reason, "%s", one->data);
    else
        openssl.set_error(library, reason, NULL);
}

void heddle_openssl_errors_put(heddle_openssl_errors *errors)
{
    for (size_t i = 0; errors && i < errors->count; i++)
        put_error(&errors->errors[i]);
    heddle_openssl_errors_free(errors);
}

void heddle_openssl_errors_free(heddle_openssl_errors *errors)
{
    for (size_t i = 0; errors && i < errors->count; i++) {
        free(errors->errors[i].file);
        free(errors->errors[i].function);
        free(errors->errors[i].data);
    }
    free(errors);
}
