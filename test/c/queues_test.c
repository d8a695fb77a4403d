/* The ready queue's ring of tokens, and the inbox through which other threads reach the loop. */
#include "check.h"

#include "scheduler/inbox.h"
#include "scheduler/token_ring.h"

#include <pthread.h>

static void ring_returns_tokens_in_order(void)
{
    heddle_token_ring ring = {0};
    uint64_t pushed = 0, shifted = 0;
    CHECK_EQUAL(0, heddle_token_ring_reserve(&ring, 1000));
    for (int round = 0; round < 5000; round++) {
        for (int i = round % 13; i > 0 && heddle_token_ring_count(&ring) < 1000; i--)
            heddle_token_ring_push(&ring, pushed++);
        for (int i = round % 11; i > 0 && heddle_token_ring_count(&ring) > 0; i--)
            CHECK_EQUAL(shifted++, heddle_token_ring_shift(&ring));
        CHECK_EQUAL(pushed - shifted, heddle_token_ring_count(&ring));
    }
    heddle_token_ring_free(&ring);
}

static void ring_keeps_its_tokens_when_it_grows(void)
{
    heddle_token_ring ring = {0};
    uint64_t pushed = 0, shifted = 0;
    for (uint32_t size = 64; size <= 65536; size *= 2) {
        CHECK_EQUAL(0, heddle_token_ring_reserve(&ring, size));
        for (int i = 0; i < 37 && shifted < pushed; i++) /* so that it begins somewhere in the middle */
            CHECK_EQUAL(shifted++, heddle_token_ring_shift(&ring));
        while (heddle_token_ring_count(&ring) < size)
            heddle_token_ring_push(&ring, pushed++);
    }
    while (heddle_token_ring_count(&ring))
        CHECK_EQUAL(shifted++, heddle_token_ring_shift(&ring));
    CHECK_EQUAL(pushed, shifted);
    heddle_token_ring_free(&ring);
}

/* After 2^32 tokens the counters begin again. */
static void counters_of_a_ring_may_wrap(void)
{
    heddle_token_ring ring = {0};
    CHECK_EQUAL(0, heddle_token_ring_reserve(&ring, 64));
    ring.head = ring.tail = UINT32_MAX - 20;
    for (uint64_t i = 0; i < 64; i++)
        heddle_token_ring_push(&ring, i);
    CHECK_EQUAL(64, heddle_token_ring_count(&ring));
    CHECK_EQUAL(0, heddle_token_ring_reserve(&ring, 128));
    for (uint64_t i = 0; i < 64; i++)
        CHECK_EQUAL(i, heddle_token_ring_shift(&ring));
    CHECK_EQUAL(0, heddle_token_ring_count(&ring));
    heddle_token_ring_free(&ring);
}

/* -- inbox ------------------------------------------------------------------------------------------------------- */

enum { WRITERS = 4, LETTERS = 50000 };

typedef struct {
    heddle_loop_message message;
    int writer, number;
} numbered_message;

static heddle_inbox inbox;
static int next_number[WRITERS], opened;

static void open_message(heddle_loop_message *message)
{
    numbered_message *self = (numbered_message *)message;
    CHECK_EQUAL(next_number[self->writer]++, self->number);
    opened++;
    free(self); /* the sender's from here on */
}

static void post(int writer, int number)
{
    numbered_message *message = malloc(sizeof(*message));
    *message = (numbered_message){.message.open = open_message, .writer = writer, .number = number};
    heddle_inbox_post(&inbox, &message->message);
}

static void messages_are_opened_in_the_order_of_arrival(void)
{
    CHECK(heddle_inbox_empty(&inbox));
    for (int i = 0; i < 10; i++)
        post(0, i);
    CHECK(!heddle_inbox_empty(&inbox));
    heddle_inbox_open(&inbox);
    CHECK_EQUAL(10, opened);
    CHECK(heddle_inbox_empty(&inbox));
    heddle_inbox_open(&inbox);
    CHECK_EQUAL(10, opened);
}

static void *write_letters(void *writer)
{
    for (int i = 0; i < LETTERS; i++)
        post((int)(intptr_t)writer, i);
    return NULL;
}

static void messages_of_many_writers_are_not_lost(void)
{
    pthread_t threads[WRITERS];
    for (intptr_t i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_letters, (void *)i);
    while (opened < WRITERS * LETTERS)
        heddle_inbox_open(&inbox);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    CHECK(heddle_inbox_empty(&inbox));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("ring", "ring returns tokens in order", ring_returns_tokens_in_order);
    check_run("ring", "ring keeps its tokens when it grows", ring_keeps_its_tokens_when_it_grows);
    check_run("ring", "counters of a ring may wrap", counters_of_a_ring_may_wrap);
    check_run("inbox", "messages are opened in the order of arrival", messages_are_opened_in_the_order_of_arrival);
    check_run("inbox", "messages of many writers are not lost", messages_of_many_writers_are_not_lost);
    return check_end();
}
