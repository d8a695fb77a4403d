#pragma once

/*
 * Walks the native frames of the calling fiber from the caller to the base of the stack, with the libraries' unwind
 * tables (.eh_frame). Unlike the unwinder in the compiler's library, this walk also gets past code without tables:
 * trampolines and just-in-time compiled code, whose frames have only a few words.
 */

#include "native_code/code_map.h"

typedef struct {
    uintptr_t function;            /* the start of the frame's function */
    const heddle_library *library; /* never NULL: frames outside of libraries are not visited */
} heddle_stack_frame;

typedef enum {
    HEDDLE_WALK_COMPLETE, /* the walk has reached the base of the stack */
    HEDDLE_WALK_STOPPED,  /* the visitor has stopped the walk */
    HEDDLE_WALK_LOST,     /* the outer frames can't be found */
} heddle_walk_end;

/* Called for each frame. Returns false to stop the walk. */
typedef bool heddle_frame_visitor(const heddle_stack_frame *frame, void *data);

/* On ARM64, removes the signature that a return address may have, in bits that user-space addresses don't use. */
static inline uintptr_t heddle_strip_signature(uintptr_t address)
{
#if defined(__aarch64__)
    return address & (((uintptr_t)1 << 48) - 1);
#else
    return address;
#endif
}

/* `base` is the highest address of the calling fiber's stack. heddle_code_map_refresh must have been called. */
heddle_walk_end heddle_stack_walk(uintptr_t base, heddle_frame_visitor *visit, void *data);
