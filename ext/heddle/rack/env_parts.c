#include "rack/env_parts.h"

#include "http/method.h"
#include "http/text.h"

#include <ruby/encoding.h>

heddle_env_keys heddle_env_key;
heddle_env_values heddle_env_value;

/* -- keys and values that are made once -------------------------------------------------------------------------- */

static VALUE keep_forever(VALUE string)
{
    rb_gc_register_mark_object(string);
    return string;
}

static VALUE made_key(const char *text)
{
    return keep_forever(rb_enc_interned_str_cstr(text, rb_utf8_encoding()));
}

static VALUE made_value(const char *text)
{
    return keep_forever(rb_enc_interned_str_cstr(text, rb_ascii8bit_encoding()));
}

VALUE heddle_env_string(const char *bytes, size_t size)
{
    return rb_str_new(bytes, (long)size);
}

#define PREFIX "HTTP_"

static void write_key(char *key, const char *name, size_t size)
{
    memcpy(key, PREFIX, sizeof(PREFIX) - 1);
    key += sizeof(PREFIX) - 1;
    for (size_t i = 0; i < size; i++) {
        char byte = name[i];
        key[i] = byte == '-' ? '_' : byte >= 'a' && byte <= 'z' ? (char)(byte - 0x20) : byte;
    }
}

VALUE heddle_env_key_of(const char *name, size_t size)
{
    char room[HEDDLE_ENV_LONGEST_KEPT];
    size_t key_size = sizeof(PREFIX) - 1 + size;
    if (key_size <= sizeof(room)) {
        write_key(room, name, size);
        return rb_enc_interned_str(room, (long)key_size, rb_utf8_encoding());
    }
    VALUE key = rb_enc_str_new(NULL, (long)key_size, rb_utf8_encoding());
    write_key(RSTRING_PTR(key), name, size);
    return rb_str_to_interned_str(key);
}

void Init_heddle_env_parts(void)
{
#define MAKE_KEY(member, text) heddle_env_key.member = made_key(text);
#define MAKE_VALUE(member, text) heddle_env_value.member = made_value(text);
    HEDDLE_ENV_KEYS(MAKE_KEY)
    HEDDLE_ENV_VALUES(MAKE_VALUE)
    for (int id = HEDDLE_FIELD_OTHER + 1; id < HEDDLE_FIELD_COUNT; id++) {
        const char *name = heddle_field_name(id);
        heddle_env_key.fields[id] = keep_forever(heddle_env_key_of(name, strlen(name)));
    }
    heddle_env_key.fields[HEDDLE_FIELD_CONTENT_TYPE] = made_key("CONTENT_TYPE");
    heddle_env_key.fields[HEDDLE_FIELD_CONTENT_LENGTH] = made_key("CONTENT_LENGTH");

    for (int method = HEDDLE_METHOD_OTHER + 1; method <= HEDDLE_TRACE; method++)
        heddle_env_value.methods[method] = made_value(heddle_method_name((heddle_method)method));
    heddle_env_value.protocols[0] = made_value("HTTP/1.0");
    heddle_env_value.protocols[1] = made_value("HTTP/1.1");
}

/* -- hosts ------------------------------------------------------------------------------------------------------- */

static VALUE make_frozen(const char *bytes, size_t size)
{
    return rb_obj_freeze(heddle_env_string(bytes, size));
}

static bool is_same(VALUE string, const char *bytes, size_t size)
{
    return (size_t)RSTRING_LEN(string) == size && memcmp(RSTRING_PTR(string), bytes, size) == 0;
}

static VALUE template_for(VALUE template, const heddle_env_host *host)
{
    template = rb_hash_dup(template);
    rb_hash_aset(template, heddle_env_key.fields[HEDDLE_FIELD_HOST], host->authority);
    if (RSTRING_LEN(host->name))
        rb_hash_aset(template, heddle_env_key.server_name, host->name);
    if (RSTRING_LEN(host->port))
        rb_hash_aset(template, heddle_env_key.server_port, host->port);
    return rb_obj_freeze(template);
}

heddle_env_host heddle_env_host_of(heddle_env_memory *memory, VALUE owner, VALUE template,
                                   const heddle_request_head *head, const char *bytes)
{
    const char *authority = bytes + head->authority.start;
    size_t size = head->authority.size;
    heddle_env_host *kept = NULL;
    if (size <= HEDDLE_ENV_LONGEST_KEPT) {
        kept = &memory->hosts[heddle_hash_bytes(0, authority, size) & (HEDDLE_ENV_HOSTS - 1)];
        if (kept->authority && is_same(kept->authority, authority, size))
            return *kept;
    }
    heddle_env_host host = {
        .authority = make_frozen(authority, size),
        .name = make_frozen(bytes + head->host.start, head->host.size),
        .port = head->port.size ? make_frozen(bytes + head->port.start, head->port.size) : heddle_env_value.empty,
    };
    host.template = template_for(template, &host);
    if (kept) {
        RB_OBJ_WRITE(owner, &kept->template, host.template);
        RB_OBJ_WRITE(owner, &kept->authority, host.authority);
        RB_OBJ_WRITE(owner, &kept->name, host.name);
        RB_OBJ_WRITE(owner, &kept->port, host.port);
    }
    return host;
}

/* -- addresses --------------------------------------------------------------------------------------------------- */

static VALUE text_of(const heddle_address *address)
{
    char room[HEDDLE_ADDRESS_ROOM];
    const char *text = heddle_address_text(address, room);
    if (!text)
        return heddle_env_value.empty;
    /* The client is on this machine, like every client of a unix socket. */
    if (address->family == AF_UNIX || strcmp(text, "127.0.0.1") == 0)
        return heddle_env_value.loopback;
    return make_frozen(text, strlen(text));
}

VALUE heddle_env_client_of(heddle_env_memory *memory, VALUE owner, const heddle_address *address)
{
    uint64_t hash = heddle_hash_bytes(0, (const char *)address->bytes, sizeof(address->bytes));
    heddle_env_client *kept = &memory->clients[hash & (HEDDLE_ENV_CLIENTS - 1)];
    if (kept->text && kept->address.family == address->family &&
        memcmp(kept->address.bytes, address->bytes, sizeof(address->bytes)) == 0)
        return kept->text;
    VALUE text = text_of(address);
    kept->address = *address;
    RB_OBJ_WRITE(owner, &kept->text, text);
    return text;
}

VALUE heddle_env_port_of(heddle_env_memory *memory, VALUE owner, const heddle_address *address)
{
    uint16_t number = address->family == AF_INET || address->family == AF_INET6 ? address->port : 80;
    if (!memory->own_port || memory->own_port_number != number) {
        char text[8];
        int size = snprintf(text, sizeof(text), "%u", number);
        VALUE port = make_frozen(text, (size_t)size);
        memory->own_port_number = number;
        RB_OBJ_WRITE(owner, &memory->own_port, port);
    }
    return memory->own_port;
}

/* -- fields ------------------------------------------------------------------------------------------------------ */

/*
 * Fields whose values are usually the same in all requests of a client, and are not modified by applications. So
 * requests share one frozen String.
 */
static const bool steady[HEDDLE_FIELD_COUNT] = {
    [HEDDLE_FIELD_ACCEPT_ENCODING] = true,
    [HEDDLE_FIELD_CACHE_CONTROL] = true,
    [HEDDLE_FIELD_CONNECTION] = true,
    [HEDDLE_FIELD_DNT] = true,
    [HEDDLE_FIELD_KEEP_ALIVE] = true,
    [HEDDLE_FIELD_PRAGMA] = true,
    [HEDDLE_FIELD_PRIORITY] = true,
    [HEDDLE_FIELD_SEC_CH_UA_MOBILE] = true,
    [HEDDLE_FIELD_SEC_CH_UA_PLATFORM] = true,
    [HEDDLE_FIELD_SEC_FETCH_DEST] = true,
    [HEDDLE_FIELD_SEC_FETCH_MODE] = true,
    [HEDDLE_FIELD_SEC_FETCH_SITE] = true,
    [HEDDLE_FIELD_SEC_FETCH_USER] = true,
    [HEDDLE_FIELD_SEC_GPC] = true,
    [HEDDLE_FIELD_SEC_WEBSOCKET_VERSION] = true,
    [HEDDLE_FIELD_TE] = true,
    [HEDDLE_FIELD_UPGRADE] = true,
    [HEDDLE_FIELD_UPGRADE_INSECURE_REQUESTS] = true,
    [HEDDLE_FIELD_X_FORWARDED_PORT] = true,
    [HEDDLE_FIELD_X_FORWARDED_PROTO] = true,
};

VALUE heddle_env_field_of(heddle_env_memory *memory, VALUE owner, heddle_field_id id, const char *value, size_t size)
{
    if (!steady[id] || size > HEDDLE_ENV_LONGEST_KEPT)
        return heddle_env_string(value, size);
    VALUE latest = memory->latest[id];
    if (!latest || !is_same(latest, value, size)) {
        latest = make_frozen(value, size);
        RB_OBJ_WRITE(owner, &memory->latest[id], latest);
    }
    return latest;
}

/* -- the collector ----------------------------------------------------------------------------------------------- */

void heddle_env_memory_mark(const heddle_env_memory *memory)
{
    for (int i = 0; i < HEDDLE_ENV_HOSTS; i++) {
        rb_gc_mark(memory->hosts[i].authority);
        rb_gc_mark(memory->hosts[i].name);
        rb_gc_mark(memory->hosts[i].port);
        rb_gc_mark(memory->hosts[i].template);
    }
    for (int i = 0; i < HEDDLE_ENV_CLIENTS; i++)
        rb_gc_mark(memory->clients[i].text);
    for (int i = 0; i < HEDDLE_FIELD_COUNT; i++)
        rb_gc_mark(memory->latest[i]);
    rb_gc_mark(memory->own_port);
}
