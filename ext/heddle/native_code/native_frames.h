#pragma once

/*
 * Is a C function of an extension on this fiber's stack, waiting for a Ruby callback to return? Such a function may
 * keep state by thread (libxml2's error handler, ffi's list of calls), and all fibers of a loop share the thread: after
 * a switch another fiber would see that state.
 *
 * First the words of the fiber's stack are compared with the executable ranges of the libraries in question. Usually no
 * word is in such a range, which proves that no such function waits. Otherwise the frames are walked, because the word
 * may be left over from a call that has returned.
 */

#include "native_code/code_map.h"

typedef enum {
    HEDDLE_FRAMES_CLEAR,   /* no such function waits */
    HEDDLE_FRAMES_NATIVE,  /* such a function waits */
    HEDDLE_FRAMES_UNKNOWN, /* the stack can't be walked to its end */
} heddle_frames_verdict;

typedef struct {
    const heddle_library *library; /* NULL where the library is unknown */
    uintptr_t called;              /* the start of the function that the library has called last; 0: unknown */
} heddle_native_frame;

/*
 * Looks for functions of libraries of these kinds (a mask) on the stack between the caller's frame and `base`, the
 * highest address of the calling fiber's stack. Call heddle_code_map_refresh first, which must succeed; load no library
 * in between. Called with the GVL, in the main Ractor.
 */
heddle_frames_verdict heddle_native_frames_inspect(unsigned kinds, uintptr_t base, heddle_native_frame *found);
