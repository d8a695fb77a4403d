/*
 * Heddle::Net::TLS::ServerNames: chooses the certificate of a TLS connection by the server name that the client sends
 * (SNI). Each name has an SSL context, which several names may share.
 */

#include "net/net.h"

#include "binding.h"
#include "net/tls.h"

/* Constants of openssl/ssl.h and openssl/tls1.h, from OpenSSL 1.1.1 on. */
enum {
    HELLO_SUCCESS = 1,
    SERVER_NAME = 0,
};

typedef int hello_callback(void *ssl, int *alert, void *argument);

#define FUNCTIONS(X)                                                                                                   \
    X("SSL_CTX_set_client_hello_cb", set_callback, void, (void *context, hello_callback *callback, void *argument))    \
    X("SSL_client_hello_get0_ext", get_extension, int,                                                                 \
      (void *ssl, unsigned int type, const unsigned char **bytes, size_t *size))                                       \
    X("SSL_set_SSL_CTX", set_context, void *, (void *ssl, void *context))
HEDDLE_TLS_LIBRARY(FUNCTIONS);

static bool load_functions(void)
{
    const heddle_tls_entry functions[] = {FUNCTIONS(HEDDLE_TLS_ENTRY)};
    /* false with LibreSSL, which lacks some of these functions */
    return !heddle_tls_find_functions(functions, sizeof(functions) / sizeof(*functions));
}

typedef struct {
    VALUE context;
    size_t size;
    char *name; /* in lower case */
} server_name;

typedef struct {
    size_t count;
    server_name *all;
} server_names;

static void names_mark(void *data)
{
    const server_names *names = data;
    for (size_t i = 0; i < names->count; i++)
        rb_gc_mark(names->all[i].context);
}

static void names_free(void *data)
{
    server_names *names = data;
    for (size_t i = 0; i < names->count; i++)
        ruby_xfree(names->all[i].name);
    ruby_xfree(names->all);
    ruby_xfree(names);
}

static const rb_data_type_t names_type =
    HEDDLE_TYPE("Heddle::Net::TLS::ServerNames", 0, .dmark = names_mark, .dfree = names_free);

HEDDLE_ALLOCATE(names_allocate, server_names, names_type)

static const server_name *find_name(const server_names *names, const char *name, size_t size)
{
    for (size_t i = 0; i < names->count; i++) {
        const server_name *one = &names->all[i];
        if (one->size == size && strncasecmp(one->name, name, size) == 0)
            return one;
    }
    return NULL;
}

/* Finds the name itself, or else the same name with a wildcard as its first label (RFC 9525, 6.3). */
static const server_name *find_name_or_wildcard(const server_names *names, const char *name, size_t size)
{
    const server_name *found = find_name(names, name, size);
    const char *dot = memchr(name, '.', size);
    char wildcard[256] = "*";
    if (found || !dot || dot == name || size - (size_t)(dot - name) >= sizeof(wildcard))
        return found;
    size_t rest = size - (size_t)(dot - name);
    memcpy(wildcard + 1, dot, rest);
    return find_name(names, wildcard, rest + 1);
}

/*
 * Returns the name in the extension server_name, or NULL. The extension is a list of names: the list's size (2 bytes),
 * then a type (0: host name), the name's size (2 bytes) and the name. OpenSSL rejects a list with more than one name.
 */
static const char *parse_extension(const unsigned char *bytes, size_t size, size_t *name_size)
{
    if (size < 5 || bytes[2] != 0)
        return NULL;
    *name_size = (size_t)bytes[3] << 8 | bytes[4];
    return *name_size == size - 5 ? (const char *)bytes + 5 : NULL;
}

static int choose_context(void *ssl, int *alert, void *argument)
{
    const unsigned char *bytes;
    size_t size;
    if (library.get_extension(ssl, SERVER_NAME, &bytes, &size) != 1)
        return HELLO_SUCCESS;
    const char *name = parse_extension(bytes, size, &size);
    const server_name *found = name ? find_name_or_wildcard(argument, name, size) : NULL;
    if (found)
        library.set_context(ssl, RTYPEDDATA_GET_DATA(found->context));
    return HELLO_SUCCESS;
}

static int add_name(VALUE name, VALUE context, VALUE self)
{
    server_names *names = rb_check_typeddata(self, &names_type);
    size_t size = (size_t)RSTRING_LEN(StringValue(name));
    char *copy = ruby_xmalloc(size + 1);
    memcpy(copy, RSTRING_PTR(name), size);
    names->all[names->count++] = (server_name){context, size, copy};
    return ST_CONTINUE;
}

/*
 * call-seq: ServerNames.new(contexts) -> names
 *
 * +contexts+ is a Hash {name => SSLContext}. The contexts must be set up.
 */
static VALUE names_initialize(VALUE self, VALUE contexts)
{
    server_names *names = rb_check_typeddata(self, &names_type);
    Check_Type(contexts, T_HASH);
    if (names->all)
        rb_raise(rb_eTypeError, "these server names are already initialized");
    names->all = ruby_xcalloc(RHASH_SIZE(contexts) + 1, sizeof(*names->all));
    rb_hash_foreach(contexts, add_name, self);
    return self;
}

/*
 * call-seq: choose_for(context) -> true or false
 *
 * From now on a connection that begins with +context+ gets the context of the name that its client sends, if the name
 * is known. +context+ must keep a reference to this object, so that this object is not garbage collected. Returns false
 * if the TLS library does not support this, or +context+ is not set up.
 */
static VALUE names_choose_for(VALUE self, VALUE context)
{
    void *native = RTYPEDDATA_GET_DATA(context);
    if (!load_functions() || !native)
        return Qfalse;
    library.set_callback(native, choose_context, rb_check_typeddata(self, &names_type));
    return Qtrue;
}

void Init_heddle_server_names(VALUE tls)
{
    VALUE names = heddle_define_class(tls, "ServerNames", names_allocate);
    rb_define_method(names, "initialize", names_initialize, 1);
    rb_define_method(names, "choose_for", names_choose_for, 1);
}
