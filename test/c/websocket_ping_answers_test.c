/* sources: http/push/ping_answers.c */
/* ruby: headers */

/* Which pings of a client are answered while much output waits for it, and when. */

#include "check.h"
#include "http/push/session.h"

enum {
    LITTLE = HEDDLE_OUTPUT_AT_ONCE - 1,
    MUCH = HEDDLE_OUTPUT_AT_ONCE,
    FRAME = 100, /* bytes of a pong here */
};

static heddle_push_session *session;
static char sent[256]; /* the first bytes of the pongs that were written */
static size_t count, pending;
static bool works;

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* -- what pongs.c calls ------------------------------------------------------------------------------------- */

size_t heddle_push_pending(const heddle_push_session *socket)
{
    return pending;
}

bool heddle_push_send_control(heddle_push_session *socket, heddle_websocket_opcode opcode, const char *payload,
                              size_t size)
{
    CHECK_EQUAL(HEDDLE_WEBSOCKET_PONG, opcode);
    if (!works)
        return false;
    CHECK(count < sizeof(sent));
    sent[count++] = size ? *payload : '-';
    pending += FRAME;
    socket->written += FRAME;
    return true;
}

void heddle_push_stop_carrier(heddle_push_session *socket)
{
    socket->state = HEDDLE_PUSH_OVER;
}

/* -- helpers ------------------------------------------------------------------------------------------------------- */

static void open_socket(size_t waiting)
{
    session = calloc(1, sizeof(*session));
    session->state = HEDDLE_PUSH_OPEN;
    session->written = pending = waiting;
    works = true;
}

static void take_ping(char payload)
{
    CHECK(heddle_push_answer_ping(session, &payload, 1));
}

static void let_leave(size_t size)
{
    pending -= size;
    heddle_push_update_pong(session);
}

static void expect_pongs(const char *payloads)
{
    CHECK_EQUAL(strlen(payloads), count);
    CHECK(memcmp(payloads, sent, count) == 0);
}

static void end_socket(void)
{
    free(session->pong);
    free(session);
}

/* -- tests --------------------------------------------------------------------------------------------------------- */

static void each_ping_is_answered_while_little_output_waits(void)
{
    open_socket(LITTLE - 3 * FRAME);
    take_ping('a');
    take_ping('b');
    CHECK(heddle_push_answer_ping(session, "", 0));
    expect_pongs("ab-");
    CHECK(!session->pong);
    end_socket();
}

static void first_and_latest_ping_are_answered_behind_much_output(void)
{
    open_socket(MUCH);
    for (char payload = 'a'; payload <= 'z'; payload++)
        take_ping(payload);
    expect_pongs("a");
    let_leave(MUCH + FRAME - 1);
    expect_pongs("a");
    let_leave(1);
    expect_pongs("az");
    let_leave(FRAME);
    expect_pongs("az");
    CHECK(!session->pong);
    end_socket();
}

/* What was written after the pong may still be there. */
static void endless_output_does_not_delay_a_pong(void)
{
    open_socket(MUCH);
    take_ping('a');
    take_ping('b');
    session->written += 2 * MUCH;
    pending += 2 * MUCH;
    let_leave(MUCH + FRAME);
    expect_pongs("ab");
    take_ping('c');
    take_ping('d');
    expect_pongs("ab");
    pending -= 2 * MUCH + FRAME;
    take_ping('e'); /* it finds that the pong has left, and little waits */
    expect_pongs("abde");
    end_socket();
}

static void client_that_reads_nothing_causes_one_pong(void)
{
    open_socket(MUCH);
    for (int pings = 0; pings < 1000000; pings++)
        take_ping('a');
    expect_pongs("a");
    CHECK_EQUAL(MUCH + FRAME, pending);
    end_socket();
}

/* The head of the response is pending, and nobody has counted it. */
static void bytes_of_the_response_head_do_not_count_as_a_sent_pong(void)
{
    open_socket(MUCH);
    pending += 200;
    take_ping('a');
    take_ping('b');
    take_ping('c');
    expect_pongs("a");
    end_socket();
}

static void closing_socket_answers_no_pings(void)
{
    open_socket(MUCH);
    take_ping('a');
    take_ping('b');
    session->state = HEDDLE_PUSH_CLOSING;
    let_leave(MUCH + FRAME);
    expect_pongs("a");
    end_socket();
}

static void socket_is_reset_when_a_pong_gets_no_memory(void)
{
    open_socket(MUCH);
    take_ping('a');
    take_ping('b');
    works = false;
    let_leave(MUCH + FRAME);
    CHECK_EQUAL(HEDDLE_PUSH_OVER, session->state);
    end_socket();
    open_socket(0);
    works = false;
    CHECK(!heddle_push_answer_ping(session, "a", 1));
    end_socket();
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("pongs", "each ping is answered while little output waits",
              each_ping_is_answered_while_little_output_waits);
    check_run("pongs", "first and latest ping are answered behind much output",
              first_and_latest_ping_are_answered_behind_much_output);
    check_run("pongs", "endless output does not delay a pong", endless_output_does_not_delay_a_pong);
    check_run("pongs", "client that reads nothing causes one pong", client_that_reads_nothing_causes_one_pong);
    check_run("pongs", "bytes of the response head do not count as a sent pong",
              bytes_of_the_response_head_do_not_count_as_a_sent_pong);
    check_run("pongs", "closing socket answers no pings", closing_socket_answers_no_pings);
    check_run("pongs", "socket is reset when a pong gets no memory", socket_is_reset_when_a_pong_gets_no_memory);
    return check_end();
}
