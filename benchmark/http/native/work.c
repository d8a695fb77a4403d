/* Work for bin/bench stalls, called by the application through Fiddle, which holds Ruby's lock or gives it up. */
#include <stdint.h>
#include <time.h>

static uint64_t now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* Waits, as a library does that talks to a device or a server of its own. */
void work_wait(int milliseconds)
{
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  while (nanosleep(&left, &left) != 0)
    ;
}

/* Computes. */
uint64_t work_compute(int milliseconds)
{
  uint64_t end = now() + (uint64_t)milliseconds, sum = 1;
  while (now() < end)
    for (int round = 0; round < 10000; round++)
      sum = sum * 6364136223846793005u + 1442695040888963407u;
  return sum;
}

/* As little as there is: what the call costs is the call. */
void work_nothing(int unused)
{
  (void)unused;
}
