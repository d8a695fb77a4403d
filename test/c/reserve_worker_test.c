/* sources: net/reserve_worker.c net/ready_list.c */
/* ruby: headers */
#include "check.h"
#include "net/sockets.h"

/* When a reserve reads the scoreboard again. */

static heddle_loop loop;
static heddle_sockets sockets = {.loop = &loop};
static heddle_scoreboard scoreboard;
static heddle_scoreboard_slot slot;
static int64_t due;
static heddle_timer *timer;

#pragma GCC diagnostic ignored "-Wunused-parameter"

int64_t heddle_scoreboard_reserve_due(const heddle_scoreboard *of, const heddle_scoreboard_slot *mine, int64_t delay)
{
    return due;
}

int heddle_timer_heap_push(heddle_timer_heap *heap, heddle_timer *pushed)
{
    timer = pushed;
    return 0;
}

void heddle_timer_heap_remove(heddle_timer_heap *heap, heddle_timer *removed)
{
    timer = NULL;
}

void heddle_listeners_pause(heddle_sockets *of, uint8_t reason)
{
    sockets.paused |= reason;
}

void heddle_listeners_resume(heddle_sockets *of, uint8_t reason)
{
    sockets.paused &= (uint8_t)~reason;
}

bool heddle_balance_blocks_a_worker(const heddle_sockets *of, const heddle_work *work)
{
    return false;
}

bool heddle_admission_reject_full(heddle_sockets *of, heddle_work *work, size_t waiting, size_t room)
{
    return false;
}

int heddle_connection_hand_off(heddle_connection *connection, int socket, int64_t shared_at)
{
    return 0;
}

int heddle_handoff_send_idle(heddle_sockets *of, int socket)
{
    return 0;
}

bool heddle_handoff_acquire(heddle_connection *connection)
{
    return true;
}

void heddle_sockets_queue(heddle_sockets *of, heddle_work *work, bool first)
{
}

static void start(bool notified)
{
    sockets.balance.scoreboard = &scoreboard;
    sockets.balance.slot = &slot;
    sockets.balance.notification.armed = notified;
    due = INT64_MAX;
    timer = NULL;
    heddle_ready_list_init(&sockets.reserve.deferred);
    heddle_reserve_enable(&sockets, 1);
    heddle_reserve_check(&sockets);
}

static void reserve_with_notifications_needs_no_timer(void)
{
    start(true);
    CHECK(!timer);
    heddle_reserve_disable(&sockets);
}

static void reserve_without_notifications_looks_again_until_it_serves(void)
{
    start(false);
    CHECK(timer);
    CHECK_EQUAL(HEDDLE_PAUSED_RESERVE, sockets.paused);
    due = 1;
    timer->fn(timer);
    CHECK(sockets.reserve.serves);
    CHECK_EQUAL(0, sockets.paused);
    CHECK(timer);
    heddle_reserve_disable(&sockets);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("reserve", "a reserve with notifications needs no timer", reserve_with_notifications_needs_no_timer);
    check_run("reserve", "a reserve without notifications looks again until it serves",
              reserve_without_notifications_looks_again_until_it_serves);
    return check_end();
}
