# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "timeout"
require "socket"

# Every object that a wait holds survives collection and compaction, at any moment.
class GarbageCollectionTest < Minitest::Test
  include Scheduled

  # A collection at every allocation takes its time.
  LIMIT = 60

  # A bit of each kind of wait.
  WORK = lambda do
    reader, writer = IO.pipe
    results = []
    jobs = [
      -> { results << reader.readpartial(10) },
      -> { results << Timeout.timeout(LIMIT) { sleep(0.001) && :slept } },
      -> { results << Enumerator.new { |y| sleep(0.001) && (y << :nested) }.next },
      -> { results << Thread.new { :thread }.value },
      -> { results << (IO.select([reader], nil, nil, 0.001) || :selected) },
      -> { sleep(0.002) && writer.write("bytes") },
      lambda do
        fiber = Fiber.schedule { sleep }
        Fiber.scheduler.interrupt(fiber, Heddle::Cancelled.new)
      end
    ]
    fibers = jobs.map { |job| Fiber.schedule(&job) }
    sleep 0.001 while fibers.any?(&:alive?)
    results.map(&:to_s).sort
  end
  EXPECTED = %w[bytes nested selected slept thread].freeze

  # More objects a fiber are more collections, and each looks through the stacks of all fibers.
  def test_a_fiber_costs_two_objects_at_most_beside_its_block
    scheduled do
      block = proc {}
      Fiber.schedule(&block)
      before = GC.stat(:total_allocated_objects)
      1_000.times { Fiber.schedule(&block) }
      # The Fiber, and a copy of its parent's storage where there is one.
      assert_operator GC.stat(:total_allocated_objects) - before, :<, 2_100
    end
  end

  def test_under_gc_stress
    results = scheduled do
      GC.stress = true
      WORK.call
    ensure
      GC.stress = false
    end

    assert_equal EXPECTED, results
  end

  def test_with_compaction_at_every_turn
    skip "this Ruby can't compact" unless GC.respond_to?(:compact)
    results = scheduled do
      compacting = true
      Fiber.schedule do
        while compacting
          GC.compact
          sleep 0
        end
      end
      WORK.call.tap { compacting = false }
    end

    assert_equal EXPECTED, results
  end

  def test_with_automatic_compaction
    skip "this Ruby can't compact" unless GC.respond_to?(:auto_compact=)
    results = compacting_by_itself do
      scheduled do
        10.times { WORK.call }
        GC.start
        WORK.call
      end
    end

    assert_equal EXPECTED, results
  end

  def compacting_by_itself
    was = GC.auto_compact
    GC.auto_compact = true
    yield
  ensure
    GC.auto_compact = was
  end

  # Nobody but the loop holds a fiber that nobody else knows.
  def test_a_fiber_referenced_by_the_loop_only_is_kept
    woken = 0
    scheduled do
      queue = Queue.new
      100.times do
        Fiber.schedule do
          Fiber.new { woken += 1 if queue.pop }.resume
        end
      end
      GC.start
      GC.compact if GC.respond_to?(:compact)
      100.times { queue << true }
    end

    assert_equal 100, woken
  end

  # Ruby 3.4.10 and 4.0.5 read the record of that fiber when the loop runs again (Ruby's bug 22196).
  if RUBY_VERSION >= "3.4"
    def test_the_fiber_that_the_loop_switched_to_last_is_kept_until_the_loop_runs_again
      nested = ObjectSpace::WeakMap.new
      scheduled do
        100.times do |number|
          take_from_enumerator(nested, number)
          clear_stack
          GC.start

          assert_includes nested.values, number
        end
      end
    end
  end

  # The loop switches to the Enumerator's fiber, which switches back to this one.
  def take_from_enumerator(nested, number)
    Enumerator.new { |to| (nested[Fiber.current] = number) && sleep(0.001) && (to << 1) }.next
  end

  # Values that are left on the stack count as references.
  def clear_stack(depth = 100) = depth.zero? || clear_stack(depth - 1)

  # Ruby 3.4 gives a stack back when the fiber ends, 3.3 when it is collected. Measured in a program of its own, where
  # nothing else takes memory.
  LEFT_FOR_OTHERS = <<~RUBY
    require "heddle/scheduler"
    size = -> { File.read("/proc/self/status")[/^VmSize:\\s+(\\d+)/, 1].to_i / 1024 }
    dead = -> { ObjectSpace.each_object(Fiber).count { |fiber| !fiber.alive? } }
    scheduler = Heddle::Scheduler.new
    Fiber.set_scheduler(scheduler)
    Fiber.schedule do
      begins, ends = Array.new(2) { Array.new(600) { Thread::Queue.new } }
      begins.zip(ends) { |first, last| Fiber.schedule { first.pop && last.pop } }
      10.times { Fiber.schedule { scheduler.yield } } # whose stacks are vacant then
      2.times { scheduler.yield }
      GC.start
      before = size.call
      begins.each do |first|
        queue = Thread::Queue.new
        Fiber.schedule { queue.pop } # what `first` leaves for, which ends then
        [first, queue].each { |one| one << 1 }
        2.times { scheduler.yield }
      end
      GC.start
      puts RUBY_VERSION < "3.4" ? dead.call : size.call - before
      ends.each { |last| last << 1 }
    end
    scheduler.run
  RUBY

  # With them there are 600 dead fibers, or 600 MB.
  def test_a_waiting_fiber_keeps_no_stack_of_an_ended_fiber
    skip "no /proc" unless File.exist?("/proc/self/status")
    output, status = ruby(LEFT_FOR_OTHERS)

    assert_predicate status, :success?, output
    assert_operator Integer(output), :<, 300
  end

  def test_a_dropped_scheduler_is_freed_with_all_it_held
    count = -> { GC.start || ObjectSpace.each_object(Heddle::Scheduler).count }
    before = count.call
    10.times do
      Thread.new do
        scheduler = Heddle::Scheduler.new
        Fiber.set_scheduler(scheduler)
        20.times { Fiber.schedule { sleep } }
        scheduler.each_fiber { |fiber, _job, _state| scheduler.interrupt(fiber, Heddle::Cancelled.new) }
      end.join
    end

    # The collector looks at the machine's stack, too, and may find one there that nobody uses.
    assert_operator count.call, :<, before + 5
  end
end
