#include "http/exchange.h"

#include "http/engine.h"

#include <stdlib.h>
#include <string.h>

static heddle_exchange *spare(heddle_engine *engine)
{
    heddle_exchange *exchange = engine->spare;
    if (!exchange)
        return malloc(sizeof(*exchange));
    engine->spare = exchange->next;
    engine->spare_count--;
    return exchange;
}

heddle_exchange *heddle_exchange_take(heddle_engine *engine, const heddle_request_head *head, const char *bytes)
{
    heddle_exchange *exchange = spare(engine);
    if (!exchange)
        return NULL;
    exchange->head = *head;
    exchange->body = NULL;
    exchange->body_size = exchange->body_room = 0;
    exchange->arrived = heddle_now();
    exchange->bytes = exchange->own_bytes;
    exchange->head.fields = exchange->own_fields;
    exchange->head.field_room = head->field_count;
    if (head->size > HEDDLE_EXCHANGE_BYTES)
        exchange->bytes = malloc(head->size);
    if (head->field_count > HEDDLE_EXCHANGE_FIELDS)
        exchange->head.fields = malloc(head->field_count * sizeof(heddle_field));
    if (!exchange->bytes || !exchange->head.fields) {
        heddle_exchange_give_back(engine, exchange);
        return NULL;
    }
    memcpy(exchange->bytes, bytes, head->size);
    memcpy(exchange->head.fields, head->fields, head->field_count * sizeof(heddle_field));
    return exchange;
}

void heddle_exchange_give_back(heddle_engine *engine, heddle_exchange *exchange)
{
    free(exchange->body);
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

char *heddle_exchange_body_room(heddle_exchange *exchange, size_t size)
{
    if (exchange->body_room - exchange->body_size < size) {
        size_t room = exchange->body_room * 2;
        if (room < exchange->body_size + size)
            room = exchange->body_size + size;
        char *body = realloc(exchange->body, room);
        if (!body)
            return NULL;
        exchange->body = body;
        exchange->body_room = room;
    }
    return exchange->body + exchange->body_size;
}
