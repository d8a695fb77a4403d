#include "http/body_deadline.h"

int64_t heddle_body_first_deadline(const heddle_engine *engine, int64_t since)
{
    return heddle_add_duration(since, engine->body_rate ? engine->body_grace : engine->body_timeout);
}

int64_t heddle_body_next_deadline(const heddle_engine *engine, int64_t deadline, uint64_t bytes)
{
    static const uint64_t SECOND = 1000000000, MOST = UINT64_C(1) << 32; /* MOST * SECOND is less than 2^64 */
    int64_t latest = heddle_add_duration(heddle_clock_coarse(), engine->body_timeout);
    if (engine->body_rate == 0 || bytes > MOST)
        return latest;
    deadline = heddle_add_duration(deadline, (int64_t)(bytes * SECOND / engine->body_rate));
    return deadline < latest ? deadline : latest;
}

void heddle_body_reject_slow(heddle_exchange *exchange)
{
    heddle_rejection rejection;
    unsigned long long rate = exchange->engine->body_rate;
    double pause = (double)exchange->engine->body_timeout / 1e9;
    if (rate)
        heddle_reject(&rejection, 408, "the body came slower than %llu bytes a second, or paused for %g s", rate,
                      pause);
    else
        heddle_reject(&rejection, 408, "the body paused for %g s", pause);
    exchange->operations->reject(exchange, &rejection, NULL);
}
