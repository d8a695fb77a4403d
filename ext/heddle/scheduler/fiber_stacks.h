#pragma once

/*
 * A lock for Ruby's list of vacant fiber stacks. Ruby takes a stack from the list at the first switch to a fiber. Ruby
 * 3.4 returns the stack when a switch comes back from a fiber that has ended.
 *
 * All Ractors share the list, and before Ruby 4.0 (ruby/ruby pull request 13466) no lock protects it: two Ractors that
 * use it at the same time get the same stack or corrupt the list, and Ruby crashes. So a loop claims the list before
 * such a switch and releases it afterwards.
 *
 * A loop waits for the list without the GVL. If it kept the GVL, it and the loop that has claimed the list could wait
 * for each other forever: that loop may need a garbage collection, which begins only when all other Ractors have
 * stopped or released their GVL. The garbage collector returns stacks, too, and its lazy sweep does not stop the other
 * Ractors. So collections in the main Ractor, and in each Ractor that has a loop, claim the list. Fibers that the
 * program makes itself, also by Enumerator#next, do not use this lock. The fibers that Heddle's Ruby code makes with
 * Fiber.new use it in a thread with a loop (Scheduler#resume_new).
 */

/*
 * Waits until no other loop or collection has claimed the list, and claims it. Returns 0, or the state of an exception
 * raised during the wait: then the list is not claimed.
 */
int heddle_fiber_stacks_lock(const void *loop);
/* Releases the list. Does nothing if this loop has not claimed it. */
void heddle_fiber_stacks_unlock(const void *loop);
/* Called once, in the main Ractor. */
void heddle_fiber_stacks_setup(void);
/* Called when a loop is made, in its Ractor. */
void heddle_fiber_stacks_join(void);
