/* Makes, reuses and ends the records of exchanges, and stores the bodies that stay in memory. */

#include "http/exchange.h"

#include "http/engine.h"
#include "net/ready_list.h"
#include "scheduler/take_errinfo.h"
#include "selector/list.h"

/* Returns the record of an ended exchange, or else a new record; NULL when out of memory. */
static heddle_exchange *take_spare(heddle_engine *engine)
{
    heddle_exchange *exchange = engine->spare;
    if (!exchange) {
        exchange = malloc(sizeof(*exchange));
        if (exchange)
            exchange->state = HEDDLE_EXCHANGE_SPARE;
        return exchange;
    }
    engine->spare = exchange->next;
    engine->spare_count--;
    return exchange;
}

heddle_exchange *heddle_exchange_new(heddle_engine *engine, const heddle_exchange_operations *operations,
                                     heddle_connection *connection, const heddle_request_head *head, const char *bytes)
{
    heddle_exchange *exchange = take_spare(engine);
    if (!exchange)
        return NULL;
    exchange->work = (heddle_work){.operations = &heddle_exchange_work, .connection = connection};
    exchange->operations = operations;
    exchange->engine = engine;
    exchange->handle = NULL;
    exchange->carrier = NULL;
    heddle_exchange_enter(exchange, HEDDLE_EXCHANGE_WAITING);
    exchange->head = *head;
    exchange->body = 0;
    exchange->body_size = exchange->body_capacity = exchange->reserved_memory = 0;
    exchange->spool = NULL;
    exchange->arrived = heddle_clock_now();
    exchange->began = 0;
    exchange->queued = exchange->arrived;
    exchange->account = NULL;
    exchange->bytes = exchange->own_bytes;
    exchange->head.fields = exchange->own_fields;
    exchange->head.field_room = head->field_count;
    if (head->size > HEDDLE_EXCHANGE_BYTES)
        exchange->bytes = malloc(head->size);
    if (head->field_count > HEDDLE_EXCHANGE_FIELDS)
        exchange->head.fields = malloc(head->field_count * sizeof(heddle_field));
    if (!exchange->bytes || !exchange->head.fields) {
        heddle_exchange_free(exchange);
        return NULL;
    }
    memcpy(exchange->bytes, bytes, head->size);
    memcpy(exchange->head.fields, head->fields, head->field_count * sizeof(heddle_field));
    exchange->work.probe = heddle_path_option_has_path(&engine->health_paths, exchange);
    return exchange;
}

void heddle_exchange_drop_body(heddle_exchange *exchange)
{
    if (!exchange->body)
        return;
    HEDDLE_LIST_REMOVE(exchange->engine->bodies, exchange);
    exchange->body = 0;
    exchange->body_size = exchange->body_capacity = 0;
}

bool heddle_exchange_reserve_memory(heddle_exchange *exchange, size_t bytes)
{
    if (bytes > exchange->reserved_memory && !heddle_body_memory_acquire(bytes - exchange->reserved_memory))
        return false;
    if (bytes < exchange->reserved_memory)
        heddle_body_memory_release(exchange->reserved_memory - bytes);
    exchange->reserved_memory = bytes;
    return true;
}

void heddle_exchange_leave_session(heddle_exchange *exchange)
{
    heddle_connection *connection = exchange->work.connection;
    /* Counts waiting requests whose client has left. A request of a handed-off connection (fd < 0) does not count. */
    if (exchange->work.list && connection->transport.fd >= 0)
        connection->sockets->clients_gone++;
    heddle_ready_list_remove(&exchange->work);
    exchange->work.connection = NULL;
    if (exchange->state == HEDDLE_EXCHANGE_WAITING)
        heddle_exchange_free(exchange);
    else if (exchange->state == HEDDLE_EXCHANGE_RUNNING)
        heddle_exchange_enter(exchange, HEDDLE_EXCHANGE_WITHOUT_SESSION);
}

void heddle_exchange_free(heddle_exchange *exchange)
{
    heddle_engine *engine = exchange->engine;
    heddle_exchange_enter(exchange, HEDDLE_EXCHANGE_SPARE);
    heddle_exchange_drop_body(exchange);
    heddle_exchange_reserve_memory(exchange, 0);
    if (exchange->spool) {
        heddle_body_spool_close(exchange->spool);
        heddle_body_spool_release(exchange->spool);
        exchange->spool = NULL;
    }
    if (exchange->bytes != exchange->own_bytes)
        free(exchange->bytes);
    if (exchange->head.fields != exchange->own_fields)
        free(exchange->head.fields);
    if (engine->spare_count >= HEDDLE_EXCHANGES_SPARE) {
        free(exchange);
        return;
    }
    exchange->next = engine->spare;
    engine->spare = exchange;
    engine->spare_count++;
}

typedef struct {
    heddle_exchange *exchange;
    size_t room;
} enlargement;

/* Called under rb_protect: enlarging the String may raise NoMemoryError. */
static VALUE enlarge_body(VALUE data)
{
    enlargement *one = (enlargement *)data;
    heddle_exchange *exchange = one->exchange;
    if (!exchange->body)
        return rb_str_buf_new((long)one->room);
    rb_str_set_len(exchange->body, (long)exchange->body_size);
    rb_str_modify_expand(exchange->body, (long)(one->room - exchange->body_size));
    return exchange->body;
}

char *heddle_exchange_make_body_room(heddle_exchange *exchange, size_t size)
{
    if (exchange->body_capacity - exchange->body_size < size) {
        enlargement one = {.exchange = exchange, .room = exchange->body_capacity * 2};
        if (one.room < exchange->body_size + size)
            one.room = exchange->body_size + size;
        int state = 0;
        VALUE body = rb_protect(enlarge_body, (VALUE)&one, &state);
        if (state) {
            heddle_take_errinfo();
            return NULL;
        }
        if (!exchange->body) /* the engine marks and pins the Strings of the exchanges in this list */
            HEDDLE_LIST_ADD(exchange->engine->bodies, exchange);
        exchange->body = body;
        exchange->body_capacity = one.room;
    }
    return RSTRING_PTR(exchange->body) + exchange->body_size;
}

VALUE heddle_exchange_take_body(heddle_exchange *exchange)
{
    VALUE body = exchange->body;
    size_t size = exchange->body_size;
    heddle_exchange_drop_body(exchange);
    if (!size)
        return Qnil;
    rb_str_set_len(body, (long)size);
    return body;
}
