#pragma once

/* A descriptor that another thread can make readable: an eventfd on Linux, a pipe elsewhere. */

typedef struct {
    int read_fd;
    int write_fd; /* equals read_fd for an eventfd */
} heddle_wakeup;

int heddle_wakeup_open(heddle_wakeup *wakeup); /* 0 or -errno */
void heddle_wakeup_close(heddle_wakeup *wakeup);
void heddle_wakeup_signal(heddle_wakeup *wakeup); /* may be called on any thread, and in a signal handler */
void heddle_wakeup_drain(heddle_wakeup *wakeup);
