#pragma once

/*
 * Finds C functions of extensions that are on the calling fiber's stack, waiting for a callback in Ruby to return. Such
 * a function may keep state for each thread, such as libxml2's error handler or ffi's list of calls. All fibers of a
 * loop share the thread, so after a switch another fiber would see that state.
 *
 * First, the words of the fiber's stack are compared with the executable ranges of the extensions' libraries. Usually
 * no word is in such a range, which proves that no function of these libraries is on the stack. Otherwise the frames
 * are walked, because a word may be left over from a call that has returned.
 */

#include "native_code/code_map.h"

typedef enum {
    HEDDLE_FRAMES_CLEAR,   /* no function of these libraries is on the stack */
    HEDDLE_FRAMES_NATIVE,  /* such a function is on the stack */
    HEDDLE_FRAMES_UNKNOWN, /* the stack could not be walked to its end */
} heddle_frames_verdict;

typedef struct {
    const heddle_library *library; /* NULL if it is unknown */
    uintptr_t called;              /* the start of the function that the library's function has called; 0: unknown */
} heddle_native_frame;

/*
 * Looks for functions of libraries of these kinds (a mask) on the stack between the caller's frame and `base`, the
 * highest address of the calling fiber's stack. Sets `found` to the innermost such frame. heddle_code_map_refresh must
 * have returned true since the last library of these kinds was loaded. Called with the GVL, in the main Ractor.
 */
heddle_frames_verdict heddle_native_frames_inspect(unsigned kinds, uintptr_t base, heddle_native_frame *found);
