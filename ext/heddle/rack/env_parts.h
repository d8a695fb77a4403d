#pragma once

/* Keys and values of a Rack env that are made once, and values that are kept for later requests. */

#include "http/fields.h"
#include "http/message.h"
#include "net/connection.h"

#define HEDDLE_ENV_KEYS(X)                                                                                             \
    X(request_method, "REQUEST_METHOD") X(path_info, "PATH_INFO") X(query_string, "QUERY_STRING")                      \
    X(request_uri, "REQUEST_URI") X(server_name, "SERVER_NAME") X(server_port, "SERVER_PORT")                          \
    X(server_protocol, "SERVER_PROTOCOL") X(remote_addr, "REMOTE_ADDR") X(rack_protocol, "rack.protocol")              \
    X(url_scheme, "rack.url_scheme") X(https, "HTTPS") X(hijack, "rack.hijack") X(can_hijack, "rack.hijack?")          \
    X(finished, "rack.response_finished") X(after_reply, "rack.after_reply") X(upgrade, "rack.upgrade?")               \
    X(body_wait, "puma.request_body_wait")
/* `localhost` and `loopback`: the name of the server and the address of the client on a unix socket. */
#define HEDDLE_ENV_VALUES(X)                                                                                           \
    X(empty, "") X(root, "/") X(https, "https") X(on, "on") X(localhost, "localhost") X(loopback, "127.0.0.1")
#define HEDDLE_ENV_MEMBER(member, text) VALUE member;

/* Made once for all loops; frozen, and never moved or freed. */
typedef struct {
    HEDDLE_ENV_KEYS(HEDDLE_ENV_MEMBER)
    VALUE fields[HEDDLE_FIELD_COUNT]; /* "HTTP_ACCEPT" …; 0 for HEDDLE_FIELD_OTHER */
} heddle_env_keys;

typedef struct {
    VALUE methods[HEDDLE_TRACE + 1]; /* 0 for HEDDLE_METHOD_OTHER */
    VALUE protocols[2];              /* the index is the minor version of HTTP/1.x */
    HEDDLE_ENV_VALUES(HEDDLE_ENV_MEMBER)
} heddle_env_values;

extern heddle_env_keys heddle_env_key;
extern heddle_env_values heddle_env_value;

/* Returns the key of a field that is not in heddle_env_keys. */
VALUE heddle_env_key_of(const char *name, size_t size);

/* Returns a binary String of these bytes. */
VALUE heddle_env_string(const char *bytes, size_t size);

/* -- values of earlier requests, in tables of fixed size ------------------------------------------------------- */

enum {
    HEDDLE_ENV_HOSTS = 32,   /* entries; a power of two */
    HEDDLE_ENV_CLIENTS = 64, /* entries; a power of two */
    HEDDLE_ENV_LONGEST_KEPT = 128, /* bytes of the longest value that is kept */
};

/* An unused entry is all 0. `name` and `port` are "" if the request has none. */
typedef struct {
    VALUE authority, name, port;
    VALUE template; /* the builder's template with this host's values */
} heddle_env_host;

typedef struct {
    heddle_address address; /* without the port */
    VALUE text;             /* 0: unused */
} heddle_env_client;

typedef struct {
    heddle_env_host hosts[HEDDLE_ENV_HOSTS];
    heddle_env_client clients[HEDDLE_ENV_CLIENTS];
    VALUE latest[HEDDLE_FIELD_COUNT]; /* the last values of fields that clients repeat in each request; or 0 */
    VALUE own_port;                   /* `own_port_number` as a String; 0: not made yet */
    uint16_t own_port_number;
} heddle_env_memory;

void heddle_env_memory_mark(const heddle_env_memory *memory);

/* `owner`: the object that contains the memory. Only heddle_env_field_of may return an object that is not frozen. */
heddle_env_host heddle_env_host_of(heddle_env_memory *memory, VALUE owner, VALUE template,
                                   const heddle_request_head *head, const char *bytes);
VALUE heddle_env_client_of(heddle_env_memory *memory, VALUE owner, const heddle_address *address);
VALUE heddle_env_port_of(heddle_env_memory *memory, VALUE owner, const heddle_address *address);
/*
 * Returns a frozen String, which later requests with the same value share. Returns a new String that is not frozen if
 * the values of this field usually differ from request to request, if applications are known to change them, or if the
 * value is longer than HEDDLE_ENV_LONGEST_KEPT.
 */
VALUE heddle_env_field_of(heddle_env_memory *memory, VALUE owner, heddle_field_id id, const char *value, size_t size);

void Init_heddle_env_parts(void);
