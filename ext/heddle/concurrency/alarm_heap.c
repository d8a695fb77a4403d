/*
 * Heddle::Concurrency::AlarmHeap: a heap of alarms, ordered by time. An alarm is a method call that is due at a time.
 * Used by lib/heddle/concurrency/alarms.rb and timers.rb.
 */

#include "concurrency/concurrency.h"

#include "binding.h"
#include "scheduler/timer_heap.h"

#include <math.h>

/*
 * The record is not embedded in the Ruby object: the garbage collector may move the object, but the heap refers to the
 * record by address.
 */
typedef struct {
    heddle_timer timer;
    VALUE self;   /* the alarm's Ruby object; valid only while the alarm is in a heap: heap_compact updates `self` */
    VALUE heap;   /* the AlarmHeap that contains the alarm, or Qfalse */
    VALUE target; /* the receiver of the method call, or nil */
    ID message;   /* the method's name */
} alarm_record;

static VALUE alarm_class;

/* -- an alarm ---------------------------------------------------------------------------------------------------- */

/* A heap and its alarms mark each other, so they become garbage together. They may be freed in any order. */
static const rb_data_type_t alarm_type =
    HEDDLE_TYPE("Heddle::Concurrency::Alarm", RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_DECL_MARKING,
                .dmark = HEDDLE_REFERENCES(offsetof(alarm_record, heap), offsetof(alarm_record, target)),
                .dfree = RUBY_DEFAULT_FREE);

HEDDLE_RECORD_OF(alarm_of, alarm_record, alarm_type)

/*
 * call-seq: time -> Float
 *
 * Returns the time that was passed to AlarmHeap#add, in seconds, truncated to whole nanoseconds; 0 if it was negative.
 */
HEDDLE_DEFINE_METHOD(alarm_time, "time", rb_float_new((double)alarm_of(self)->timer.deadline / 1e9))

/* -- the heap ---------------------------------------------------------------------------------------------------- */

static alarm_record *alarm_at(const heddle_timer_heap *heap, size_t index)
{
    return (alarm_record *)heap->entries[index];
}

static void heap_mark(void *data)
{
    const heddle_timer_heap *heap = data;
    for (size_t i = 0; i < heap->count; i++)
        rb_gc_mark_movable(alarm_at(heap, i)->self);
}

static void heap_compact(void *data)
{
    const heddle_timer_heap *heap = data;
    for (size_t i = 0; i < heap->count; i++)
        alarm_at(heap, i)->self = rb_gc_location(alarm_at(heap, i)->self);
}

/* This function must not read the alarms, because the garbage collector may have freed them already. */
static void heap_free(void *data)
{
    heddle_timer_heap_free(data);
    xfree(data);
}

static const rb_data_type_t heap_type =
    HEDDLE_TYPE("Heddle::Concurrency::AlarmHeap", RUBY_TYPED_WB_PROTECTED, .dmark = heap_mark, .dfree = heap_free,
                .dcompact = heap_compact);

HEDDLE_ALLOCATE(heap_allocate, heddle_timer_heap, heap_type)

HEDDLE_RECORD_OF(heap_of, heddle_timer_heap, heap_type)

static int64_t to_deadline(VALUE seconds)
{
    double nanoseconds = NUM2DBL(seconds) * 1e9;
    if (isnan(nanoseconds))
        rb_raise(rb_eArgError, "the time of an alarm must be a number, but is NaN");
    if (nanoseconds <= 0)
        return 0;
    return nanoseconds >= (double)INT64_MAX ? INT64_MAX : (int64_t)nanoseconds;
}

static void release_alarm(heddle_timer_heap *heap, alarm_record *alarm)
{
    heddle_timer_heap_remove(heap, &alarm->timer);
    alarm->heap = Qfalse;
    alarm->target = Qnil;
}

/*
 * call-seq: add(time, target, message) -> Alarm
 *
 * Adds an alarm that is due at +time+ (seconds on the caller's clock). When it is due, #ring calls the method +message+
 * of +target+. The method must not wait. O(log n).
 */
static VALUE heap_add(VALUE self, VALUE time, VALUE target, VALUE message)
{
    heddle_timer_heap *heap = heap_of(self);
    int64_t deadline = to_deadline(time);
    ID id = rb_sym2id(message);
    alarm_record *alarm;
    VALUE object = TypedData_Make_Struct(alarm_class, alarm_record, &alarm_type, alarm);
    alarm->timer.deadline = deadline;
    alarm->self = object;
    alarm->target = Qnil;
    alarm->message = id;
    if (heddle_timer_heap_push(heap, &alarm->timer) != 0)
        rb_memerror();
    RB_OBJ_WRITTEN(self, Qundef, object);
    RB_OBJ_WRITE(object, &alarm->heap, self);
    RB_OBJ_WRITE(object, &alarm->target, target);
    return object;
}

/*
 * call-seq: remove(alarm) -> true or false
 *
 * Removes an alarm; it then no longer refers to its target. Returns false if the alarm is not in this heap. O(log n).
 */
static VALUE heap_remove(VALUE self, VALUE object)
{
    heddle_timer_heap *heap = heap_of(self);
    alarm_record *alarm = alarm_of(object);
    if (alarm->heap != self)
        return Qfalse;
    release_alarm(heap, alarm);
    return Qtrue;
}

/*
 * call-seq: ring(time) -> Float or nil
 *
 * If the earliest alarm is due at +time+, removes it, calls its method and returns 0.0: the next alarm may be due, too,
 * so the caller must call #ring again. Otherwise returns the seconds until the earliest alarm is due. Returns nil if
 * there is no alarm.
 */
static VALUE heap_ring(VALUE self, VALUE time)
{
    heddle_timer_heap *heap = heap_of(self);
    if (heap->count == 0)
        return Qnil;
    int64_t left = heap->entries[0]->deadline - to_deadline(time);
    if (left > 0)
        return DBL2NUM((double)left / 1e9);
    alarm_record *alarm = alarm_at(heap, 0);
    VALUE target = alarm->target;
    ID message = alarm->message;
    release_alarm(heap, alarm);
    rb_funcallv_public(target, message, 0, NULL);
    return DBL2NUM(0);
}

/*
 * call-seq: first -> Alarm or nil
 *
 * Returns the earliest alarm. If several alarms have the same time, returns the one that was added first.
 */
static VALUE heap_first(VALUE self)
{
    const heddle_timer_heap *heap = heap_of(self);
    return heap->count ? alarm_at(heap, 0)->self : Qnil;
}

/*
 * call-seq: empty? -> true or false
 */
HEDDLE_DEFINE_METHOD(heap_empty_p, "empty?", heap_of(self)->count ? Qfalse : Qtrue)

/*
 * call-seq: clear -> self
 *
 * Removes every alarm.
 */
static VALUE heap_clear(VALUE self)
{
    heddle_timer_heap *heap = heap_of(self);
    while (heap->count)
        release_alarm(heap, alarm_at(heap, heap->count - 1));
    return self;
}

void Init_heddle_alarm_heap(VALUE concurrency)
{
    alarm_class = heddle_define_class(concurrency, "Alarm", NULL);
    rb_define_method(alarm_class, "time", alarm_time, 0);
    VALUE heap_class = heddle_define_class(concurrency, "AlarmHeap", heap_allocate);
    rb_define_method(heap_class, "add", heap_add, 3);
    rb_define_method(heap_class, "remove", heap_remove, 1);
    rb_define_method(heap_class, "ring", heap_ring, 1);
    rb_define_method(heap_class, "first", heap_first, 0);
    rb_define_method(heap_class, "empty?", heap_empty_p, 0);
    rb_define_method(heap_class, "clear", heap_clear, 0);
}
