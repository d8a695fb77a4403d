#ifndef HEDDLE_NATIVE_FRAMES_H
#define HEDDLE_NATIVE_FRAMES_H

/*
 * Does a C function of an extension wait for Ruby code of this fiber to return? Such a function may keep state by its
 * thread (libxml2's error handler, ffi's list of calls), and all fibers of a loop share one: a switch would show it to
 * another fiber.
 *
 * First the words of the fiber's stack are compared with the executable ranges of the libraries in question. Most of
 * the time none is in there, which proves that no such function waits. Else the frames are walked: the word may be left
 * over from a call that has returned.
 */

#include "scheduler/code_map.h"

typedef enum {
    HEDDLE_FRAMES_CLEAR,   /* no such function waits */
    HEDDLE_FRAMES_NATIVE,  /* one does */
    HEDDLE_FRAMES_UNKNOWN, /* what can't be judged */
} heddle_frames_verdict;

typedef struct {
    const heddle_library *library; /* NULL where that is not known */
    uintptr_t function;            /* … of it, the innermost one */
    uintptr_t called;              /* the start of the next frame's function, which that one called; 0: not known */
} heddle_native_frame;

/*
 * Of libraries of these kinds, a mask, between the caller and `base`, the highest address of the calling fiber's stack.
 * `found` may be NULL. With the GVL, in the main Ractor.
 */
heddle_frames_verdict heddle_native_frames_inspect(unsigned kinds, uintptr_t base, heddle_native_frame *found);

/* The same where nothing can have been loaded since heddle_code_map_refresh that is of these kinds. */
heddle_frames_verdict heddle_native_frames_inspect_again(unsigned kinds, uintptr_t base, heddle_native_frame *found);

/* How often was looked, how often a stack had to be walked, and how many frames were walked in all. */
typedef struct {
    uint64_t looks, walks, frames;
} heddle_native_frames_counts;

heddle_native_frames_counts heddle_native_frames_count(void);

#endif
