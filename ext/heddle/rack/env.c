/* Heddle::Rack::EnvBuilder: makes the Rack env of a request. */

#include "binding.h"
#include "http/forwarded.h"
#include "http/text.h"
#include "net/networks.h"
#include "net/tls.h"
#include "rack/env.h"
#include "rack/env_parts.h"

#include <ruby/encoding.h>

/* -- the builder ------------------------------------------------------------------------------------------------- */

typedef struct {
    VALUE template; /* 0: not initialized */
    VALUE proxies; /* a Heddle::Net::Networks with the trusted proxies; Qnil: the fields of proxies are not examined */
    heddle_env_memory memory;
} env_builder;

static void builder_mark(void *data)
{
    env_builder *builder = data;
    rb_gc_mark(builder->template);
    rb_gc_mark(builder->proxies);
    heddle_env_memory_mark(&builder->memory);
}

static const rb_data_type_t builder_type =
    HEDDLE_TYPE("Heddle::Rack::EnvBuilder", RUBY_TYPED_WB_PROTECTED, .dmark = builder_mark, .dfree = RUBY_DEFAULT_FREE);

HEDDLE_ALLOCATE(builder_allocate, env_builder, builder_type)

HEDDLE_RECORD_OF(any_builder_of, env_builder, builder_type)

static env_builder *builder_of(VALUE self)
{
    env_builder *builder = any_builder_of(self);
    if (!builder->template)
        rb_raise(rb_eArgError, "this EnvBuilder was not initialized");
    return builder;
}

/*
 * The number of pairs for which an env has room before its table grows. A browser's request needs about as many. Room
 * for twice as many would cost each request 40 ns; a table that grows costs a request 80 ns.
 */
enum { USUAL_PAIRS = 31 };

static void add_pair(VALUE env, const char *key, VALUE value)
{
    rb_hash_aset(env, rb_enc_interned_str_cstr(key, rb_utf8_encoding()), value);
}

/*
 * call-seq: EnvBuilder.new(errors, proxies)
 *
 * `errors`: rack.errors. `proxies`: a Net::Networks with the trusted proxies. Fields that describe a proxy's client
 * (HEDDLE_FORWARDED_FIELDS) are accepted only from these proxies, and are removed from the requests of all other
 * clients. If `proxies` is nil, the application gets all of these fields, and the server itself uses none of them. A
 * builder belongs to one loop.
 */
static VALUE builder_initialize(VALUE self, VALUE errors, VALUE proxies)
{
    if (any_builder_of(self)->template)
        rb_raise(rb_eArgError, "this EnvBuilder is already initialized");
    VALUE template = rb_hash_new_capa(USUAL_PAIRS);
    /* The template has the values of most requests; a request sets only the values that differ. */
    rb_hash_aset(template, heddle_env_key.request_method, heddle_env_value.methods[HEDDLE_GET]);
    add_pair(template, "SCRIPT_NAME", heddle_env_value.empty);
    rb_hash_aset(template, heddle_env_key.path_info, Qnil);
    rb_hash_aset(template, heddle_env_key.query_string, heddle_env_value.empty);
    rb_hash_aset(template, heddle_env_key.request_uri, heddle_env_value.root);
    rb_hash_aset(template, heddle_env_key.server_name, Qnil);
    rb_hash_aset(template, heddle_env_key.server_port, Qnil);
    rb_hash_aset(template, heddle_env_key.server_protocol, heddle_env_value.protocols[1]);
    rb_hash_aset(template, heddle_env_key.remote_addr, heddle_env_value.loopback);
    add_pair(template, "rack.url_scheme", rb_str_new_frozen(rb_str_new_cstr("http")));
    add_pair(template, "rack.errors", errors);
    rb_hash_aset(template, heddle_env_key.can_hijack, Qtrue);
    /* the input of a request without a body; Handler replaces it for other requests */
    add_pair(template, "rack.input", rb_const_get(rb_path2class("Heddle::Rack::NoInput"), rb_intern("INSTANCE")));
    if (!NIL_P(proxies))
        rb_check_typeddata(proxies, &heddle_networks_type);
    RB_OBJ_WRITE(self, &any_builder_of(self)->proxies, proxies);
    RB_OBJ_WRITE(self, &any_builder_of(self)->template, rb_obj_freeze(template));
    return self;
}

/* -- an env ------------------------------------------------------------------------------------------------------ */

typedef struct {
    VALUE builder, hash;
    env_builder *parts;
    const heddle_request_head *head;
    const char *bytes;
    heddle_address remote;       /* a copy: report_removed_fields may run when the connection is gone */
    const heddle_address *local; /* NULL: not determined yet */
    heddle_connection *connection;
    bool secure;    /* the connection uses TLS */
    bool forwarded; /* the request may have one of HEDDLE_FORWARDED_FIELDS */
    bool reports_forwarding; /* one that report_forwarding reports was removed */
} env;

static VALUE string_of(const env *env, heddle_slice slice)
{
    return heddle_env_string(env->bytes + slice.start, slice.size);
}

static const heddle_address *local_of(env *env)
{
    if (!env->local)
        env->local = heddle_connection_local(env->connection);
    return env->local;
}

static void add_target(const env *env)
{
    const heddle_request_head *head = env->head;
    if (head->method_id != HEDDLE_GET) {
        VALUE method = heddle_env_value.methods[head->method_id];
        rb_hash_aset(env->hash, heddle_env_key.request_method, method ? method : string_of(env, head->method));
    }
    /* `OPTIONS http://host` is the same as `OPTIONS *` (RFC 9112, 3.2.4). */
    VALUE path = head->path.size ? string_of(env, head->path) : heddle_env_string("*", 1);
    rb_hash_aset(env->hash, heddle_env_key.path_info, path);
    if (head->query.size)
        rb_hash_aset(env->hash, heddle_env_key.query_string, string_of(env, head->query));
    if (head->target.size != 1 || env->bytes[head->target.start] != '/')
        rb_hash_aset(env->hash, heddle_env_key.request_uri, string_of(env, head->target));
    if (head->minor == 0)
        rb_hash_aset(env->hash, heddle_env_key.server_protocol, heddle_env_value.protocols[0]);
}

static VALUE own_name(env *env)
{
    const heddle_address *local = local_of(env);
    char room[HEDDLE_ADDRESS_ROOM];
    const char *text = heddle_address_text(local, room);
    if (!text || local->family == AF_UNIX)
        return heddle_env_value.localhost;
    return strchr(text, ':') ? rb_sprintf("[%s]", text) : heddle_env_string(text, strlen(text));
}

/*
 * Copies the template, and adds the host and the client. The host is from the field Host, or from the target if that is
 * in absolute form (RFC 9112, 3.2.2).
 */
static void start_env(env *env)
{
    heddle_env_memory *memory = &env->parts->memory;
    heddle_env_host host = {
        .name = heddle_env_value.empty, .port = heddle_env_value.empty, .template = env->parts->template};
    if (env->head->has_host)
        host = heddle_env_host_of(memory, env->builder, env->parts->template, env->head, env->bytes);
    env->hash = rb_hash_dup(host.template);
    if (!RSTRING_LEN(host.name))
        rb_hash_aset(env->hash, heddle_env_key.server_name, own_name(env));
    if (!RSTRING_LEN(host.port))
        rb_hash_aset(env->hash, heddle_env_key.server_port, heddle_env_port_of(memory, env->builder, local_of(env)));
    VALUE client = heddle_env_client_of(memory, env->builder, &env->remote);
    if (client != heddle_env_value.loopback)
        rb_hash_aset(env->hash, heddle_env_key.remote_addr, client);
}

/*
 * Adds the value of a repeated field. Values are joined with commas (RFC 9110, 5.3), cookies with semicolons (RFC 9113,
 * 8.2.3). A repeated Content-Length is ignored: the parser has checked that its values are equal.
 */
static void add_again(const env *env, heddle_field_id id, VALUE key, VALUE earlier, heddle_slice value)
{
    if (id == HEDDLE_FIELD_CONTENT_LENGTH)
        return;
    VALUE list = OBJ_FROZEN(earlier) ? rb_str_dup(earlier) : earlier;
    rb_str_cat(list, id == HEDDLE_FIELD_COOKIE ? "; " : ", ", 2);
    rb_str_cat(list, env->bytes + value.start, value.size);
    if (list != earlier)
        rb_hash_aset(env->hash, key, list);
}

_Static_assert(HEDDLE_FIELD_COUNT <= 64, "a bit for each field");

/*
 * `seen` has a bit for each known name that has occurred. If names with an underscore are kept, such a name may have
 * the same env key as a known name.
 *
 * A field `Proxy`, which no standard defines, is left out. In an env it would be HTTP_PROXY, which HTTP clients, and
 * programs started with that env, would use as the proxy of their own requests (CVE-2016-5385 and others, "httpoxy").
 */
static void add_fields(env *env)
{
    const heddle_request_head *head = env->head;
    uint64_t seen = UINT64_C(1) << HEDDLE_FIELD_HOST; /* start_env has set Host */
    bool underscores = false, others = false;
    for (unsigned i = 0; i < head->field_count; i++) {
        const heddle_field *field = &head->fields[i];
        const char *name = env->bytes + field->name.start;
        heddle_field_id id = (heddle_field_id)field->id;
        bool may_have_key = underscores;
        VALUE key;
        if (id == HEDDLE_FIELD_HOST) {
            continue;
        } else if (id == HEDDLE_FIELD_OTHER) {
            if (field->name.size == 5 && strncasecmp(name, "proxy", 5) == 0)
                continue;
            if (memchr(name, '_', field->name.size))
                may_have_key = underscores = true;
            may_have_key |= others;
            others = true;
            key = heddle_env_key_of(name, field->name.size);
        } else {
            may_have_key |= (seen >> id & 1) != 0;
            seen |= UINT64_C(1) << id;
            key = heddle_env_key.fields[id];
        }
        VALUE earlier = may_have_key ? rb_hash_lookup(env->hash, key) : Qnil;
        if (NIL_P(earlier))
            rb_hash_aset(env->hash, key,
                         heddle_env_field_of(&env->parts->memory, env->builder, id, env->bytes + field->value.start,
                                             field->value.size));
        else
            add_again(env, id, key, earlier, field->value);
    }
    env->forwarded = underscores || (seen & HEDDLE_FORWARDED_FIELDS);
}

static void add_protocols_of(const env *env, heddle_slice value, VALUE protocols)
{
    const char *at = env->bytes + value.start, *end = at + value.size, *protocol;
    size_t size;
    while ((protocol = heddle_next_element(&at, end, &size)))
        rb_ary_push(protocols, heddle_env_string(protocol, size));
}

static void add_protocols(const env *env)
{
    VALUE protocols = rb_ary_new();
    for (unsigned i = 0; i < env->head->field_count; i++) {
        if (env->head->fields[i].id == HEDDLE_FIELD_UPGRADE)
            add_protocols_of(env, env->head->fields[i].value, protocols);
    }
    if (RARRAY_LEN(protocols) > 0)
        rb_hash_aset(env->hash, heddle_env_key.rack_protocol, protocols);
}

static void report_removed(const char *method, VALUE argument)
{
    rb_funcall(rb_path2class("Heddle::Rack::RemovedFields"), rb_intern(method), 1, argument);
}

static void report_forwarding(const env *env)
{
    static atomic_bool reported;
    if (atomic_exchange(&reported, true))
        return;
    char room[HEDDLE_ADDRESS_ROOM];
    const char *text = heddle_address_text(&env->remote, room);
    report_removed("forwarding", rb_str_new_cstr(text ? text : "a client"));
}

static void report_underscore(const env *env)
{
    enum { LONGEST = 200 };
    static atomic_bool reported;
    if (atomic_exchange(&reported, true))
        return;
    heddle_slice target = env->head->target;
    size_t size = target.size < LONGEST ? target.size : LONGEST;
    report_removed("underscore", heddle_env_string(env->bytes + target.start, size));
}

/* Called last, because a log may let other fibers run, and the connection may be closed meanwhile. */
static void report_removed_fields(const env *env)
{
    if (env->head->dropped)
        report_underscore(env);
    if (env->reports_forwarding)
        report_forwarding(env);
}

/*
 * If the peer is a trusted proxy, takes the scheme from HEDDLE_FORWARDED_FIELDS. Otherwise removes all of these fields,
 * because Rack and Rails would accept them from any client.
 */
static void judge_scheme(env *env)
{
    VALUE proxies = env->parts->proxies;
    if (NIL_P(proxies))
        return;
    if (heddle_networks_include(proxies, &env->remote)) {
        heddle_scheme scheme = heddle_forwarded_scheme(env->head, env->bytes);
        if (scheme != HEDDLE_SCHEME_UNKNOWN)
            env->secure = scheme == HEDDLE_SCHEME_HTTPS;
        return;
    }
    for (int id = 0; id < HEDDLE_FIELD_COUNT; id++) {
        if (!(HEDDLE_FORWARDED_FIELDS >> id & 1))
            continue;
        VALUE removed = rb_hash_delete(env->hash, heddle_env_key.fields[id]);
        if (!NIL_P(removed) && (id == HEDDLE_FIELD_FORWARDED || id == HEDDLE_FIELD_X_FORWARDED_PROTO))
            env->reports_forwarding = true;
    }
}

static void add_https(VALUE hash)
{
    rb_hash_aset(hash, heddle_env_key.url_scheme, heddle_env_value.https);
    rb_hash_aset(hash, heddle_env_key.https, heddle_env_value.on);
}

static VALUE build_env(env *env)
{
    env->parts = builder_of(env->builder);
    start_env(env);
    add_target(env);
    add_fields(env);
    if (env->head->upgrade)
        add_protocols(env);
    if (env->forwarded)
        judge_scheme(env);
    if (env->secure)
        add_https(env->hash);
    RB_GC_GUARD(env->builder);
    return env->hash;
}

/* Adds the client's certificate, if the server has requested one. */
static void add_client_certificate(VALUE hash, const heddle_connection *connection)
{
    const heddle_tls *tls = connection->transport.tls;
    if (tls && tls->asks && tls->socket)
        rb_funcall(rb_path2class("Heddle::Rack::ClientCertificate"), rb_intern("add"), 2, hash, tls->socket);
}

VALUE heddle_rack_env(VALUE builder, const heddle_request_head *head, const char *bytes,
                      heddle_connection *connection)
{
    env env = {
        .builder = builder,
        .head = head,
        .bytes = bytes,
        .remote = connection->remote,
        .connection = connection,
        .secure = connection->secure,
    };
    VALUE hash = build_env(&env);
    if (connection->transport.tls)
        add_client_certificate(hash, connection);
    report_removed_fields(&env);
    return hash;
}

void Init_heddle_env(VALUE rack)
{
    Init_heddle_env_parts();
    VALUE class = heddle_define_class(rack, "EnvBuilder", builder_allocate);
    rb_define_method(class, "initialize", builder_initialize, 2);
}
