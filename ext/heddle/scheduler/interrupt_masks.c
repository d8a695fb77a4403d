#include "scheduler/interrupt_masks.h"

#include "selector/list.h"

typedef struct {
    VALUE exception_class, closest, timing;
} mask_search;

/* If several entries of `timings` match, the entry of the closest ancestor applies, as in Ruby. */
static int compare_entry(VALUE key, VALUE timing, VALUE data)
{
    mask_search *search = (mask_search *)data;
    if (!RB_TYPE_P(key, T_CLASS) && !RB_TYPE_P(key, T_MODULE))
        return ST_CONTINUE;
    if (!RTEST(rb_class_inherited_p(search->exception_class, key)))
        return ST_CONTINUE;
    if (search->closest == Qundef || RTEST(rb_class_inherited_p(key, search->closest))) {
        search->closest = key;
        search->timing = timing;
    }
    return ST_CONTINUE;
}

/*
 * Does the mask apply while the fiber `waiting` waits? Yes, unless `waiting` is the mask's owner itself and the mask
 * was set in a nested fiber, such as the block of an Enumerator (as in heddle_timeout_covers_wait).
 */
static bool mask_holds(const heddle_interrupt_mask *mask, VALUE waiting)
{
    return waiting != mask->owner->fiber || mask->fiber == waiting;
}

/* Returns the timing of the innermost block that concerns the exception, or Qnil if there is none. */
static VALUE mask_timing(const heddle_fiber *fiber, VALUE waiting, VALUE exception)
{
    VALUE exception_class = RB_TYPE_P(exception, T_CLASS) ? exception : rb_obj_class(exception);
    for (const heddle_interrupt_mask *mask = fiber->masks; mask; mask = mask->outer) {
        if (!mask_holds(mask, waiting))
            continue;
        mask_search search = {.exception_class = exception_class, .closest = Qundef, .timing = Qundef};
        rb_hash_foreach(mask->timings, compare_entry, (VALUE)&search);
        if (search.closest != Qundef)
            return search.timing;
    }
    return Qnil;
}

bool heddle_interrupt_masked(const heddle_fiber *fiber, VALUE waiting, VALUE exception)
{
    return fiber->masks && mask_timing(fiber, waiting, exception) == ID2SYM(rb_intern("never"));
}

bool heddle_interrupt_delayed(const heddle_fiber *fiber, VALUE running, VALUE exception)
{
    VALUE timing = fiber->masks ? mask_timing(fiber, running, exception) : Qnil;
    return !NIL_P(timing) && timing != ID2SYM(rb_intern("immediate"));
}

void heddle_fiber_drop_masks(heddle_fiber *fiber)
{
    for (heddle_interrupt_mask *mask = fiber->masks; mask; mask = mask->outer)
        mask->owner = NULL;
    fiber->masks = NULL;
}

/*
 * Marks nested fibers. Otherwise a nested fiber that is never resumed again would be garbage collected, and its stack
 * with the mask's record freed.
 */
void heddle_fiber_mark_masks(const heddle_fiber *fiber)
{
    for (const heddle_interrupt_mask *mask = fiber->masks; mask; mask = mask->outer)
        rb_gc_mark(mask->fiber);
}

typedef struct {
    heddle_interrupt_mask mask;
    heddle_loop *loop;
    bool immediate;
} masked_block;

static VALUE call_block(VALUE data)
{
    const masked_block *self = (const masked_block *)data;
    if (self->immediate) /* raises exceptions that an outer block has delayed */
        heddle_fiber_raise_delayed(self->loop, rb_fiber_current());
    return rb_yield(Qnil);
}

/*
 * An exception that the block has delayed is raised at the block's end, as in Ruby, even if the block itself raises
 * another exception. It is not raised while an outer block delays it.
 */
static VALUE end_block(VALUE data)
{
    masked_block *self = (masked_block *)data;
    if (!self->mask.owner)
        return Qnil;
    HEDDLE_LIST_REMOVE_INNER(self->mask.owner->masks, &self->mask);
    heddle_fiber_raise_delayed(self->loop, rb_fiber_current());
    return Qnil;
}

/*
 * Called by InterruptMasks#handle_interrupt, after Ruby has checked `timings`. `immediate`: one of the timings is
 * :immediate.
 */
static VALUE scheduler_mask_interrupts(VALUE self, VALUE timings, VALUE immediate)
{
    heddle_loop *loop = heddle_loop_of(self);
    heddle_loop_notice_fork(loop);
    if (heddle_loop_is_closed(loop) || loop->thread != rb_thread_current())
        return rb_yield(Qnil);
    heddle_fiber *owner = heddle_fiber_current(loop);
    masked_block block = {
        .mask = {.owner = owner, .outer = owner->masks, .fiber = rb_fiber_current(), .timings = timings},
        .loop = loop,
        .immediate = RTEST(immediate),
    };
    owner->masks = &block.mask;
    VALUE result = rb_ensure(call_block, (VALUE)&block, end_block, (VALUE)&block);
    RB_GC_GUARD(timings);
    RB_GC_GUARD(self);
    return result;
}

void heddle_define_interrupt_masks(VALUE scheduler_class)
{
    rb_define_private_method(scheduler_class, "mask_interrupts", scheduler_mask_interrupts, 2);
}
