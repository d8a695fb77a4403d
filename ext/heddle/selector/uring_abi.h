#pragma once

/*
 * Constants of io_uring that the kernel headers of the build machine may lack. The numbers belong to the kernel's ABI.
 * A version in a comment is the first Linux version that has the feature.
 *
 * The features are probed at run time. So an extension that was built on an old machine can use all features of a new
 * kernel.
 */

#include <linux/io_uring.h>

#include "system.h"

#include <sys/syscall.h>

#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#define __NR_io_uring_enter 426
#define __NR_io_uring_register 427
#endif

enum {
    HEDDLE_SETUP_CQSIZE = 1u << 3,
    HEDDLE_SETUP_SUBMIT_ALL = 1u << 7,      /* 5.18 */
    HEDDLE_SETUP_TASKRUN_FLAG = 1u << 9,    /* 5.19 */
    HEDDLE_SETUP_SINGLE_ISSUER = 1u << 12,  /* 6.0 */
    HEDDLE_SETUP_DEFER_TASKRUN = 1u << 13,  /* 6.1 */

    HEDDLE_ENTER_GETEVENTS = 1u << 0,
    HEDDLE_ENTER_EXT_ARG = 1u << 3,
    HEDDLE_ENTER_REGISTERED_RING = 1u << 4, /* 5.18 */

    HEDDLE_SQ_CQ_OVERFLOW = 1u << 1,
    HEDDLE_SQ_TASKRUN = 1u << 2,

    HEDDLE_REGISTER_RING_FDS = 20,
    HEDDLE_UNREGISTER_RING_FDS = 21,
    HEDDLE_REGISTER_SYNC_CANCEL = 24,       /* 6.0 */

    HEDDLE_CANCEL_ALL = 1u << 0,
    HEDDLE_CANCEL_ANY = 1u << 2,

    HEDDLE_CQE_F_MORE = 1u << 1,
    HEDDLE_POLL_MULTISHOT = 1u << 0,

    HEDDLE_OP_POLL_ADD = 6,
    HEDDLE_OP_POLL_REMOVE = 7,
    HEDDLE_OP_ASYNC_CANCEL = 14,
    HEDDLE_OP_READ = 22,
    HEDDLE_OP_WRITE = 23,
};

/* The argument of HEDDLE_REGISTER_SYNC_CANCEL. */
typedef struct {
    uint64_t address;
    int32_t fd;
    uint32_t flags;
    int64_t seconds, nanoseconds; /* how long to wait for the end of the operations; -1: no limit */
    uint8_t opcode, reserved[7];
    uint64_t more[3];
} heddle_sync_cancel;
