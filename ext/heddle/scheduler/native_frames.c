#include "scheduler/native_frames.h"

#include "scheduler/stack_walk.h"

static heddle_native_frames_counts counts;

heddle_native_frames_counts heddle_native_frames_count(void)
{
    return counts;
}

/* Reads what belongs to other frames, and where the sanitizer sees no variables. */
__attribute__((no_sanitize("address"))) static bool contains_code(unsigned kinds, uintptr_t from, uintptr_t to)
{
    uintptr_t lowest, highest;
    heddle_code_map_bounds(kinds, &lowest, &highest);
    if (lowest == highest)
        return false;
    for (const uintptr_t *word = (const uintptr_t *)from; (uintptr_t)word + sizeof(*word) <= to; word++) {
        uintptr_t value = *(const volatile uintptr_t *)word;
#if defined(__aarch64__)
        value &= (UINTPTR_C(1) << 48) - 1; /* return addresses may be signed */
#endif
        if (value - lowest > highest - lowest)
            continue;
        const heddle_library *library = heddle_code_map_find(value);
        if (library && library->kind & kinds)
            return true;
    }
    return false;
}

typedef struct {
    unsigned kinds;
    heddle_native_frame frame;
    uintptr_t inner;
} search;

static bool visit(const heddle_stack_frame *frame, void *data)
{
    search *self = data;
    counts.frames++;
    if (frame->library->kind & self->kinds) {
        self->frame = (heddle_native_frame){
            .library = frame->library, .function = frame->function, .called = self->inner};
        return false;
    }
    self->inner = frame->function;
    return true;
}

heddle_frames_verdict heddle_native_frames_look(unsigned kinds, uintptr_t base, heddle_native_frame *found)
{
    search self = {.kinds = kinds};
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    heddle_frames_verdict verdict = HEDDLE_FRAMES_UNKNOWN;
    counts.looks++;
    if (!heddle_code_map_unsupported() && here < base && heddle_code_map_refresh()) {
        verdict = HEDDLE_FRAMES_CLEAR;
        if (contains_code(kinds, here, base)) {
            counts.walks++;
            switch (heddle_stack_walk(base, visit, &self)) {
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
