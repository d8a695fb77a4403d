#include "scheduler/native_frames.h"

#include "scheduler/stack_walk.h"

enum { WORDS = 16 }; /* compared at a time */

/* Reads words of other functions' frames, in which the sanitizer knows no variables. */
__attribute__((no_sanitize("address"))) static bool contains_code(unsigned kinds, uintptr_t from, uintptr_t to)
{
    uintptr_t lowest, highest;
    heddle_code_map_find_bounds(kinds, &lowest, &highest);
    const uintptr_t span = highest - lowest, *word = (const uintptr_t *)from, *end = (const uintptr_t *)to;
#if defined(__aarch64__)
    const uintptr_t mask = ((uintptr_t)1 << 48) - 1; /* return addresses may be signed */
#else
    const uintptr_t mask = UINTPTR_MAX;
#endif
    if (!span)
        return false;
    /* Most words are not an address in a library: they are compared in groups, without a branch for each word. */
    while (word < end) {
        unsigned count = end - word < WORDS ? (unsigned)(end - word) : WORDS, near = 0;
        for (unsigned i = 0; i < count; i++)
            near += (word[i] & mask) - lowest < span;
        for (unsigned i = 0; near && i < count; i++) {
            const heddle_library *library = heddle_code_map_find(word[i] & mask);
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
        self->frame = (heddle_native_frame){
            .library = frame->library, .function = frame->function, .called = self->inner};
        return false;
    }
    self->inner = frame->function;
    return true;
}

static heddle_frames_verdict look_at_frames(unsigned kinds, uintptr_t base, heddle_native_frame *found, bool refreshes)
{
    search self = {.kinds = kinds};
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    heddle_frames_verdict verdict = HEDDLE_FRAMES_UNKNOWN;
    if (found)
        *found = self.frame;
    if (!heddle_code_map_unsupported() && here < base && (!refreshes || heddle_code_map_refresh())) {
        verdict = HEDDLE_FRAMES_CLEAR;
        if (contains_code(kinds, here, base)) {
            if (!refreshes && !heddle_code_map_refresh())
                return HEDDLE_FRAMES_UNKNOWN;
            switch (heddle_stack_walk(base, visit_frame, &self)) {
            case HEDDLE_WALK_COMPLETE: break;
            case HEDDLE_WALK_STOPPED: verdict = HEDDLE_FRAMES_NATIVE; break;
            case HEDDLE_WALK_LOST: verdict = HEDDLE_FRAMES_UNKNOWN; break;
            }
        }
    }
    if (found)
        *found = self.frame;
    return verdict;
}

heddle_frames_verdict heddle_native_frames_inspect(unsigned kinds, uintptr_t base, heddle_native_frame *found)
{
    return look_at_frames(kinds, base, found, true);
}

heddle_frames_verdict heddle_native_frames_inspect_unchanged(unsigned kinds, uintptr_t base, heddle_native_frame *found)
{
    return look_at_frames(kinds, base, found, false);
}
