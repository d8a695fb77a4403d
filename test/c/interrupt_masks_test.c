/* sources: scheduler/interrupt_masks.c */
/* ruby: headers */
#include "check.h"
#include "scheduler/interrupt_masks.h"

/*
 * The blocks of Thread.handle_interrupt that fibers are in: a list whose records lie on the stacks of the blocks. Here
 * each record is freed when its block ends, so that the sanitizers see a use that comes too late.
 */

enum {
    NEVER = 2, /* an ID */
    MOST = 16,
};

/* Classes are numbers: each is a subclass of the ones that divide it. A timings Hash is a list of pairs. */
typedef struct {
    VALUE classes[2], timings[2];
    int size;
} timings;

static heddle_loop loop;
static heddle_fiber fibers[2];
static VALUE running; /* Ruby's current fiber */
static heddle_fiber *record;
static VALUE marked[MOST];
static int marks, checks;
static VALUE (*block)(VALUE);
static VALUE (*mask_interrupts)(VALUE, VALUE, VALUE);

/* -- stand-ins for Ruby and the loop ----------------------------------------------------------------------------- */

static struct RBasic classes[31];

static VALUE class_of(int number)
{
    classes[number].flags = T_CLASS;
    return (VALUE)&classes[number];
}

VALUE rb_class_inherited_p(VALUE a, VALUE b)
{
    long one = (struct RBasic *)a - classes, other = (struct RBasic *)b - classes;
    return one % other == 0 ? Qtrue : Qnil;
}

VALUE rb_obj_class(VALUE object)
{
    return object;
}

void rb_hash_foreach(VALUE hash, int (*each)(VALUE, VALUE, VALUE), VALUE data)
{
    const timings *self = (const timings *)hash;
    for (int i = 0; i < self->size; i++)
        each(self->classes[i], self->timings[i], data);
}

VALUE rb_fiber_current(void)
{
    return running;
}

void rb_gc_mark(VALUE object)
{
    CHECK(marks < MOST);
    marked[marks++] = object;
}

VALUE rb_thread_current(void)
{
    return loop.thread;
}

VALUE rb_yield(VALUE value)
{
    return block(value);
}

VALUE rb_ensure(VALUE (*body)(VALUE), VALUE data, VALUE (*end)(VALUE), VALUE end_data)
{
    VALUE result = body(data);
    end(end_data);
    return result;
}

#undef rb_intern
ID rb_intern(const char *name)
{
    CHECK_EQUAL(0, strcmp("never", name));
    return NEVER;
}

VALUE rb_id2sym(ID id)
{
    return (VALUE)id;
}

ID rb_intern2(const char *name, long size)
{
    (void)size;
    return rb_intern(name);
}

#undef rb_define_private_method
void rb_define_private_method(VALUE klass, const char *name, VALUE (*function)(ANYARGS), int arity)
{
    (void)klass;
    (void)name;
    CHECK_EQUAL(2, arity);
    mask_interrupts = (VALUE(*)(VALUE, VALUE, VALUE))function;
}

heddle_loop *heddle_loop_of(VALUE self)
{
    return (heddle_loop *)self;
}

void heddle_loop_notice_fork(heddle_loop *self)
{
    (void)self;
}

heddle_fiber *heddle_fiber_current(heddle_loop *self)
{
    (void)self;
    return record;
}

void heddle_fiber_raise_delayed(heddle_loop *self, VALUE fiber)
{
    (void)self;
    (void)fiber;
    checks++;
}

/* -- tests ------------------------------------------------------------------------------------------------------- */

static timings never(int number)
{
    return (timings){.classes = {class_of(number)}, .timings = {ID2SYM(NEVER)}, .size = 1};
}

static void start(void)
{
    loop = (heddle_loop){.thread = 1};
    for (int i = 0; i < 2; i++)
        fibers[i] = (heddle_fiber){.loop = &loop, .fiber = (VALUE)(100 + i)};
    record = &fibers[0];
    running = record->fiber;
    marks = checks = 0;
    heddle_define_interrupt_masks(0);
}

static heddle_interrupt_mask *new_mask(heddle_fiber *owner, VALUE fiber, const timings *what)
{
    heddle_interrupt_mask *mask = malloc(sizeof(*mask));
    *mask = (heddle_interrupt_mask){.owner = owner, .outer = owner->masks, .fiber = fiber, .timings = (VALUE)what};
    owner->masks = mask;
    return mask;
}

static VALUE look(VALUE value)
{
    (void)value;
    CHECK(heddle_interrupt_masked(record, running, class_of(6)));
    CHECK(!heddle_interrupt_masked(record, running, class_of(5)));
    CHECK(!heddle_interrupt_masked(&fibers[1], running, class_of(6)));
    return Qtrue;
}

static void block_masks_its_class_and_subclasses(void)
{
    start();
    timings three = never(3);
    block = look;
    CHECK_EQUAL(Qtrue, mask_interrupts((VALUE)&loop, (VALUE)&three, Qfalse));
    CHECK(!fibers[0].masks);
    CHECK_EQUAL(1, checks); /* at its end */
    mask_interrupts((VALUE)&loop, (VALUE)&three, Qtrue);
    CHECK_EQUAL(3, checks); /* … and at its beginning, where it lets through what an outer one delays */
}

static void closest_ancestor_class_counts(void)
{
    start();
    for (int turn = 0; turn < 2; turn++) {
        timings both = {.classes = {class_of(2), class_of(6)}, .size = 2};
        both.timings[turn] = ID2SYM(NEVER);
        both.timings[!turn] = ID2SYM(NEVER + 1);
        heddle_interrupt_mask *mask = new_mask(record, running, &both);
        CHECK_EQUAL(turn == 1, heddle_interrupt_masked(record, running, class_of(12)));
        CHECK_EQUAL(turn == 0, heddle_interrupt_masked(record, running, class_of(4)));
        heddle_fiber_drop_masks(record);
        free(mask);
    }
}

static void block_of_a_nested_fiber_masks_that_fiber_and_the_fibers_it_resumes(void)
{
    start();
    timings three = never(3);
    heddle_interrupt_mask *mask = new_mask(record, 200, &three);
    CHECK(!heddle_interrupt_masked(record, record->fiber, class_of(3)));
    CHECK(heddle_interrupt_masked(record, 200, class_of(3)));
    CHECK(heddle_interrupt_masked(record, 201, class_of(3)));
    heddle_fiber_mark_masks(record);
    CHECK_EQUAL(1, marks);
    CHECK_EQUAL(200, marked[0]);
    heddle_fiber_drop_masks(record);
    CHECK(!mask->owner);
    free(mask);
}

static heddle_interrupt_mask *other;

static VALUE end_other(VALUE value)
{
    /* The block around this one belongs to a fiber that ran in turns with it, and ends first. */
    CHECK(record->masks->outer == other);
    record->masks->outer = other->outer;
    free(other);
    other = NULL;
    return value;
}

static void blocks_may_end_in_any_order(void)
{
    start();
    timings three = never(3);
    other = new_mask(record, 200, &three);
    block = end_other;
    mask_interrupts((VALUE)&loop, (VALUE)&three, Qfalse);
    CHECK(!record->masks);
}

static VALUE end_fiber(VALUE value)
{
    heddle_fiber_drop_masks(record);
    memset(&fibers[0], 0xff, sizeof(fibers[0])); /* as freed */
    return value;
}

static void block_may_outlive_its_fiber(void)
{
    start();
    timings three = never(3);
    block = end_fiber;
    mask_interrupts((VALUE)&loop, (VALUE)&three, Qfalse);
    CHECK_EQUAL(0, checks);
}

static VALUE inner(VALUE value)
{
    CHECK(loop.state != HEDDLE_LOOP_CLOSED ? record->masks != NULL : !record->masks);
    return value;
}

static void blocks_mask_nothing_in_a_closed_loop_or_another_thread(void)
{
    start();
    timings three = never(3);
    block = inner;
    mask_interrupts((VALUE)&loop, (VALUE)&three, Qfalse);
    loop.state = HEDDLE_LOOP_CLOSED;
    mask_interrupts((VALUE)&loop, (VALUE)&three, Qfalse);
    CHECK_EQUAL(1, checks);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("masks", "block masks its class and subclasses", block_masks_its_class_and_subclasses);
    check_run("masks", "closest ancestor class counts", closest_ancestor_class_counts);
    check_run("masks", "block of a nested fiber masks that fiber and the fibers it resumes",
              block_of_a_nested_fiber_masks_that_fiber_and_the_fibers_it_resumes);
    check_run("masks", "blocks may end in any order", blocks_may_end_in_any_order);
    check_run("masks", "block may outlive its fiber", block_may_outlive_its_fiber);
    check_run("masks", "blocks mask nothing in a closed loop or another thread",
              blocks_mask_nothing_in_a_closed_loop_or_another_thread);
    return check_end();
}
