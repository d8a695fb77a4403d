#ifndef HEDDLE_FIBER_STACKS_H
#define HEDDLE_FIBER_STACKS_H

/*
 * One loop at a time has to do with the stacks of fibers, in the whole process.
 *
 * A fiber gets its stack from a list of vacant ones when it is first switched to. Ruby 3.4 puts it back when somebody
 * arrives whose last switch was to that fiber, and it has ended since. All Ractors share the list, and before Ruby 4.0
 * (ruby/ruby pull request 13466) nothing protects it: two that touch it at the same time get the same stack, or tear
 * the list, and Ruby crashes. So a loop claims the list before such a switch, and releases it on arrival. The wait for
 * it is without the GVL: a garbage collection in another Ractor needs all others to come to a stop where Ruby can see
 * it, and the holder of the list may need one.
 *
 * The garbage collector puts stacks back, too, and what is left of an earlier sweep it sweeps without stopping the
 * others. So it has the list while it works, in the main Ractor and in those that have a loop.
 *
 * The program's own fibers (Enumerator#next too) do not use this.
 */

/* Claims it as soon as nobody else has it. 0, or the state of what was raised in the wait: then it is not claimed. */
int heddle_fiber_stacks_obtain(const void *loop);
/* Nothing, when this loop has not claimed it. */
void heddle_fiber_stacks_release(const void *loop);
/* Once, in the main Ractor. */
void heddle_fiber_stacks_setup(void);
/* A loop is made in the calling Ractor. */
void heddle_fiber_stacks_join(void);

#endif
