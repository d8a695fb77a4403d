#ifndef HEDDLE_STACK_WALK_H
#define HEDDLE_STACK_WALK_H

/*
 * Walks the native frames of the calling fiber by the unwind tables of the libraries (.eh_frame), from the caller to
 * the base of the stack. Unlike the unwinder of the compiler's library it goes on behind code without tables: that of a
 * just-in-time compiler, whose frames are few words, and of trampolines.
 */

#include "scheduler/code_map.h"

typedef struct {
    uintptr_t function;            /* where its function begins */
    const heddle_library *library; /* never NULL: frames of no library are passed over */
} heddle_stack_frame;

typedef enum {
    HEDDLE_WALK_COMPLETE, /* all frames were visited */
    HEDDLE_WALK_STOPPED,  /* the visitor has seen enough */
    HEDDLE_WALK_LOST,     /* frames further out are not known */
} heddle_walk_end;

/* False: enough. */
typedef bool heddle_frame_visitor(const heddle_stack_frame *frame, void *data);

/* `base` is the highest address of the calling fiber's stack. The map of the code is current. */
heddle_walk_end heddle_stack_walk(uintptr_t base, heddle_frame_visitor *visit, void *data);

#endif
