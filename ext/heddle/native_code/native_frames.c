#include "native_code/native_frames.h"

#include "native_code/stack_walk.h"

enum { WORDS = 16 }; /* how many words are compared in one group */

/*
 * Does any word in this part of the stack point into the code of a library of these kinds? AddressSanitizer is off,
 * because the function reads the frames of other functions.
 */
__attribute__((no_sanitize("address"))) static bool contains_code(unsigned kinds, uintptr_t from, uintptr_t to)
{
    uintptr_t lowest, highest;
    heddle_code_map_find_bounds(kinds, &lowest, &highest);
    const uintptr_t span = highest - lowest, *word = (const uintptr_t *)from, *end = (const uintptr_t *)to;
    if (!span)
        return false;
    /*
     * Most words are not addresses of these libraries. So the words are compared in groups, without a branch for each
     * word.
     */
    while (word < end) {
        unsigned count = end - word < WORDS ? (unsigned)(end - word) : WORDS, near = 0;
        for (unsigned i = 0; i < count; i++)
            near += heddle_strip_signature(word[i]) - lowest < span;
        for (unsigned i = 0; near && i < count; i++) {
            const heddle_library *library = heddle_code_map_find(heddle_strip_signature(word[i]));
            if (library && library->kind & kinds)
                return true;
        }
        word += count;
    }
    return false;
}

typedef struct {
    unsigned kinds;
    heddle_native_frame frame;
    uintptr_t inner;
} search;

static bool visit_frame(const heddle_stack_frame *frame, void *data)
{
    search *self = data;
    if (frame->library->kind & self->kinds) {
        self->frame = (heddle_native_frame){.library = frame->library, .called = self->inner};
        return false;
    }
    self->inner = frame->function;
    return true;
}

heddle_frames_verdict heddle_native_frames_inspect(unsigned kinds, uintptr_t base, heddle_native_frame *found)
{
    search self = {.kinds = kinds};
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    *found = self.frame;
    if (here >= base)
        return HEDDLE_FRAMES_UNKNOWN;
    if (!contains_code(kinds, here, base))
        return HEDDLE_FRAMES_CLEAR;
    if (!heddle_code_map_refresh()) /* the walk also needs libraries that were loaded since the last refresh */
        return HEDDLE_FRAMES_UNKNOWN;
    heddle_walk_end end = heddle_stack_walk(base, visit_frame, &self);
    *found = self.frame;
    return end == HEDDLE_WALK_COMPLETE  ? HEDDLE_FRAMES_CLEAR
           : end == HEDDLE_WALK_STOPPED ? HEDDLE_FRAMES_NATIVE
                                        : HEDDLE_FRAMES_UNKNOWN;
}
