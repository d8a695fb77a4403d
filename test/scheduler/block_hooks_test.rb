# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "monitor"
require "weakref"

# R4: thread primitives are safe and don't block the loop.
class BlockHooksTest < Minitest::Test
  include Scheduled

  def test_threads_are_joined_while_others_continue
    scheduled do
      gate = Queue.new
      threads = Array.new(3) { |i| Thread.new { gate.pop && i } }
      values = nil
      Fiber.schedule { values = threads.map(&:value) }
      assert_nil values
      3.times { gate << true }
      until_true { values }

      assert_equal [0, 1, 2], values
    end
  end

  def test_thread_join_takes_a_limit
    scheduled do
      gate = Queue.new
      thread = Thread.new { gate.pop }

      assert_nil thread.join(0.01)
      gate << true

      assert_same thread, thread.join
    end
  end

  def test_a_thread_and_fibers_share_a_mutex
    counter = 0
    mutex = Mutex.new
    scheduled do
      add = lambda do
        2_000.times do
          mutex.synchronize do
            read = counter
            Thread.pass
            counter = read + 1
          end
        end
      end
      thread = Thread.new(&add)
      fibers = Array.new(2) { Fiber.schedule(&add) }
      thread.join
      until_true { fibers.none?(&:alive?) }
    end

    assert_equal 6_000, counter
  end

  # An exception that came in between would leave the lock to the next one's `ensure`, which is not its owner.
  def test_a_condition_variable_locks_again_before_the_exception_continues
    monitor = Monitor.new
    condition = monitor.new_cond
    outcome = []
    scheduled do |scheduler|
      waiting = Fiber.schedule do
        monitor.synchronize do
          condition.wait
          outcome << :locked
          scheduler.block(:interrupted)
        end
      rescue IndexError
        outcome << :raised
      end
      holder = Fiber.schedule do
        monitor.synchronize do
          condition.signal
          scheduler.block(:gate)
        end
        outcome << :unlocked
      end
      5.times { scheduler.yield }
      scheduler.interrupt(waiting, IndexError.new)
      5.times { scheduler.yield }
      scheduler.unblock(:gate, holder)
      until_true { outcome.size == 3 }
    end

    assert_equal %i[unlocked locked raised], outcome
  end

  # Ruby wakes one fiber of those that wait. If that one raised, those behind it would wait forever.
  WAKE_UPS = {
    "mutex" => lambda do
      mutex = Mutex.new.tap(&:lock)
      [-> { mutex.synchronize { :locked } }, -> { mutex.unlock }]
    end,
    "monitor" => lambda do
      monitor = Monitor.new.tap(&:enter)
      [-> { monitor.synchronize { :locked } }, -> { monitor.exit }]
    end,
    "queue" => lambda do
      queue = Queue.new
      [-> { queue.pop }, -> { queue << :item }]
    end,
    "sized_queue" => lambda do
      queue = SizedQueue.new(1) << :item
      [-> { queue << :another }, -> { queue.pop }]
    end,
    "condition_variable" => lambda do
      mutex = Mutex.new
      condition = ConditionVariable.new
      [-> { mutex.synchronize { condition.wait(mutex) } }, -> { mutex.synchronize { condition.signal } }]
    end
  }.freeze

  WAKE_UPS.each do |name, make|
    define_method("test_an_exception_loses_no_wake_up_of_a_#{name}") do
      assert_equal %i[woken raised], woken_and_interrupted(make) { |wake, interrupt| [wake, interrupt] }
      assert_equal %i[woken raised], woken_and_interrupted(make) { |wake, interrupt| [interrupt, wake] }
    end
  end

  def test_a_mutex_goes_to_the_next_after_one_that_was_interrupted
    taken = []
    scheduled do |scheduler|
      mutex = Mutex.new.tap(&:lock)
      first, = Array.new(2) do |number|
        Fiber.schedule do
          mutex.synchronize { taken << number }
          scheduler.block(:interrupted) if number.zero?
        rescue IndexError
          taken << :raised
        end
      end
      mutex.unlock
      scheduler.interrupt(first, IndexError.new)
      10.times { scheduler.yield }
    end

    assert_equal [0, 1, :raised], taken.sort_by(&:to_s)
  end

  def test_a_mutex_is_owned_by_the_fiber_that_locked_it
    scheduled do
      mutex = Mutex.new
      order = []
      Fiber.schedule do
        mutex.synchronize do
          order << :first
          sleep 0.01
          order << :still_first
        end
      end
      mutex.synchronize { order << :second }

      assert_equal %i[first still_first second], order
    end
  end

  def test_a_queue_passes_items_between_a_thread_and_a_fiber
    received = scheduled do
      queue = Queue.new
      thread = Thread.new do
        10_000.times { |i| queue << i }
        queue.close
      end
      items = []
      while (item = queue.pop)
        items << item
      end
      thread.join
      items
    end

    assert_equal Array.new(10_000) { |i| i }, received
  end

  def test_a_sized_queue_holds_its_writer_back
    scheduled do
      queue = SizedQueue.new(2)
      written = 0
      Fiber.schedule do
        5.times do |i|
          queue << i
          written += 1
        end
      end

      assert_equal 2, written
      assert_equal [0, 1, 2, 3, 4], Array.new(5) { queue.pop }
    end
  end

  def test_queue_pop_takes_a_timeout
    scheduled { assert_nil Queue.new.pop(timeout: 0.01) }
  end

  def test_waits_take_every_limit_that_ruby_takes
    scheduled do
      queue = Thread::Queue.new
      assert_nil queue.pop(timeout: -1)
      assert_nil queue.pop(timeout: -0.5)
      assert_nil queue.pop(timeout: -1r)
      [Float::INFINITY, 1e30].each do |limit|
        Fiber.schedule { queue << limit }
        assert_equal limit, queue.pop(timeout: limit)
        thread = Thread.new { Thread.pass }
        assert_same thread, thread.join(limit)
      end
      sleeper = Thread.new { sleep }
      [-1, -(2**63), -Float::INFINITY, Struct.new(:to_f).new(0.01), 1/100r].each do |limit|
        assert_nil sleeper.join(limit)
      end
      sleeper.kill
      [2**64, Struct.new(:to_f).new(60.0)].each { |limit| assert_same sleeper, sleeper.join(limit) }
      assert_raises(TypeError) { sleeper.join(:soon) }
    end
  end

  def test_a_condition_variable_waits_and_is_signalled
    scheduled do
      mutex = Mutex.new
      condition = ConditionVariable.new
      ready = false
      seen = []
      waiting = Fiber.schedule do
        mutex.synchronize do
          condition.wait(mutex) until ready
          seen << :woken
        end
      end
      mutex.synchronize do
        ready = true
        condition.signal
      end
      until_true { !waiting.alive? }

      assert_equal [:woken], seen
    end
  end

  def test_a_condition_variable_takes_a_timeout
    scheduled do
      mutex = Mutex.new
      mutex.synchronize { ConditionVariable.new.wait(mutex, 0.01) }

      refute_predicate mutex, :locked?
    end
  end

  # fiber-scheduler trap 5: cancelled inside ConditionVariable#wait, the mutex is held again when it unwinds.
  def test_a_raise_into_a_condition_wait_leaves_the_mutex_usable
    scheduled do
      mutex = Mutex.new
      outcome = nil
      waiting = Fiber.schedule do
        mutex.synchronize { ConditionVariable.new.wait(mutex) }
      rescue RuntimeError, ThreadError => e
        outcome = e
      end
      waiting.raise("stop")
      until_true { outcome }
      skip "Ruby < 3.4 loses the mutex here (Ruby #12158)" if outcome.is_a?(ThreadError) && RUBY_VERSION < "3.4"

      assert_equal "stop", outcome.message
      assert mutex.try_lock
    end
  end

  # The fiber is struck where it sleeps, or where it waits for the mutex to lock it again.
  { "in_its_sleep" => false, "while_it_locks_again" => true }.each do |moment, signalled|
    define_method("test_a_fiber_killed_in_a_condition_wait_#{moment}_has_the_mutex_when_it_unwinds") do
      assert_equal([true, :held, nil], struck_in_a_condition_wait(signalled, &:kill))
    end

    define_method("test_a_raise_into_a_condition_wait_#{moment}_comes_when_the_mutex_is_locked") do
      assert_equal([true, :held, "stop"], struck_in_a_condition_wait(signalled) { |fiber| fiber.raise("stop") })
    end
  end

  # Another fiber locks the mutex before the killed one gets its turn.
  def test_a_killed_fiber_waits_for_the_mutex_again_when_another_was_faster
    scheduled do
      mutex = Mutex.new
      condition = ConditionVariable.new
      seen = []
      waiting = Fiber.schedule do
        mutex.synchronize do
          condition.wait(mutex)
        ensure
          seen << mutex.owned?
        end
      end
      mutex.lock
      condition.signal
      sleep 0
      waiting.kill
      mutex.unlock
      mutex.lock
      sleep 0
      seen << :unlocking
      mutex.unlock
      until_true { !waiting.alive? }

      assert_equal [:unlocking, true], seen
      refute_predicate mutex, :locked?
    end
  end

  # The owner's unlock has woken the first of those that wait, which is struck before it has its turn.
  { "killed" => :kill.to_proc, "raised_in" => ->(fiber) { fiber.raise("stop") } }.each do |name, strike|
    define_method("test_a_fiber_#{name}_when_it_was_woken_for_a_mutex_passes_its_turn_on") do
      order = []
      scheduled do
        mutex = Mutex.new
        mutex.lock
        struck, *others = Array.new(3) do |number|
          Fiber.schedule do
            mutex.synchronize { order << number }
          rescue RuntimeError
            order << :struck
          end
        end
        mutex.unlock
        strike.call(struck)
        until_true { others.none?(&:alive?) }
      end

      assert_equal [1, 2], order - [:struck]
    end
  end

  # A file that one fiber loads and others wait for: Ruby has a Mutex of its own for that.
  def test_a_fiber_killed_when_its_turn_to_load_a_file_comes_passes_it_on
    Dir.mktmpdir do |folder|
      path = File.join(folder, "slow.rb")
      File.write(path, "$load_gate.pop\n")
      $load_gate = Queue.new # the file that is loaded knows nothing else
      scheduled do
        loading, struck, *others = Array.new(4) { Fiber.schedule { require path } }
        loading.kill
        struck.kill
        $load_gate.close
        until_true { others.none?(&:alive?) }
      end

      assert_includes $LOADED_FEATURES, path
    end
  end

  def test_a_monitor_can_be_entered_again_by_its_owner_only
    scheduled do
      monitor = Monitor.new
      order = []
      Fiber.schedule do
        monitor.synchronize do
          monitor.synchronize { order << :inner }
          sleep 0.01
          order << :outer
        end
      end
      monitor.synchronize { order << :other }

      assert_equal %i[inner outer other], order
    end
  end

  # Between Ruby's listing of a fiber and the hook's own code another thread may run and wake the fiber up.
  def test_a_wake_up_that_comes_before_the_fiber_has_parked_is_kept
    queue = Queue.new
    entered = false
    popped = scheduled(slow_hooks(before: :block) { entered = true }) do
      Thread.new do
        Thread.pass until entered
        queue << :item
      end
      queue.pop
    end
    assert_equal :item, popped
  end

  def test_a_signal_that_comes_before_the_fiber_has_parked_is_kept
    mutex = Mutex.new
    condition = ConditionVariable.new
    sleeping = woken = 0
    in_thread do
      Fiber.set_scheduler(slow_hooks(before: :kernel_sleep) { sleeping += 1 })
      Fiber.schedule do
        20.times do
          mutex.synchronize { condition.wait(mutex) }
          woken += 1
        end
      end
      Thread.new do
        20.times do |i|
          Thread.pass until sleeping == i + 1
          mutex.synchronize { condition.signal }
        end
      end
    end
    assert_equal 20, woken
  end

  # Fiber::Scheduler allows it: Ruby's own example sleeps so.
  def test_a_signal_is_kept_for_a_subclass_that_sleeps_by_block
    mutex = Mutex.new
    condition = ConditionVariable.new
    sleeping = woken = 0
    hooks = Class.new(Heddle::Scheduler) do
      define_method(:kernel_sleep) do |duration = nil|
        sleeping += 1
        Fiber.blocking { sleep 0.001 }
        block(:sleep, duration)
        true
      end
    end.new
    in_thread do
      Fiber.set_scheduler(hooks)
      Fiber.schedule do
        20.times do
          mutex.synchronize { condition.wait(mutex) }
          woken += 1
        end
        hooks.unblock(:earlier, Fiber.current)
        started = now
        sleep 0.02
        woken += 1 if now - started < 0.02
      end
      Thread.new do
        20.times do |i|
          Thread.pass until sleeping == i + 1
          mutex.synchronize { condition.signal }
        end
      end
    end

    assert_equal 20, woken
  end

  def test_a_wake_up_during_a_wait_of_the_hook_itself_is_kept
    queue = Queue.new
    reader, writer = IO.pipe
    entered = false
    hooks = slow_hooks(before: :block) { (entered = true) && reader.read(1) }
    popped = scheduled(hooks) do |scheduler|
      Fiber.schedule do
        scheduler.yield until entered
        queue << :item
        writer << "x"
      end
      queue.pop
    end
    assert_equal :item, popped
  end

  def test_a_wake_up_that_is_left_over_shortens_no_sleep
    scheduled do |scheduler|
      scheduler.unblock(Mutex.new, Fiber.current)
      started = now
      sleep 0.02

      assert_operator now - started, :>=, 0.02
      scheduler.unblock(:earlier, Fiber.current)
      refute scheduler.block(:later, 0.001)
      assert scheduler.block(:earlier), "an unblock is kept for what it was meant for"
      refute scheduler.block(:earlier, 0.001), "and once only"
    end
  end

  # No array holds the fibers: the collector would find it on the stack now and then, and keep all of them.
  def test_wake_ups_of_ended_fibers_are_dropped
    taken = done = false
    left = scheduled do |scheduler|
      waiting = Fiber.schedule do
        scheduler.yield until done
        taken = scheduler.block(:alive, 0)
      end
      scheduler.unblock(:alive, waiting)
      kept = Array.new(200) { weak_reference_to_unblocked(scheduler) }
      GC.start
      done = true
      kept.count(&:weakref_alive?)
    end

    assert_operator left, :<, 100
    assert taken, "that of a fiber that lives is kept"
  end

  private

  # A fiber waits for a condition while another has the mutex, and is struck there.
  #
  # @param signalled [Boolean] it is woken before, and waits for the mutex
  # @yield [fiber] strikes
  # @return [Array(Boolean, Symbol, String)] whether it had the mutex at its end, what the other one noted, its error
  def struck_in_a_condition_wait(signalled)
    seen = []
    error = nil
    scheduled do
      mutex = Mutex.new
      condition = ConditionVariable.new
      waiting = Fiber.schedule do
        mutex.synchronize do
          condition.wait(mutex)
        ensure
          seen << mutex.owned?
        end
      rescue StandardError => e
        error = e.message
      end
      mutex.synchronize do
        condition.signal if signalled
        sleep 0
        yield waiting
        sleep 0
        seen << :held
      end
      until_true { !waiting.alive? }

      refute_predicate mutex, :locked?
    end
    [*seen.reverse, error]
  end

  # @return [WeakRef] to a fiber that has ended
  def weak_reference_to_unblocked(scheduler)
    fiber = Fiber.schedule { nil }
    scheduler.unblock(:gone, fiber)
    WeakRef.new(fiber)
  end

  # @param make [#call] returns what waits, and what wakes it
  # @yield [wake, interrupt] their order
  # @return [Array<Symbol>] what has happened to the fiber that waited
  def woken_and_interrupted(make)
    seen = []
    scheduled do |scheduler|
      wait, wake = make.call
      waiting = Fiber.schedule do
        wait.call
        seen << :woken
        scheduler.block(:interrupted)
      rescue IndexError
        seen << :raised
      end
      yield(wake, -> { scheduler.interrupt(waiting, IndexError.new) }).each(&:call)
      10.times { scheduler.yield }
    end
    seen
  end

  # A scheduler whose hook lets other threads run before it does anything.
  def slow_hooks(before:, &block)
    block ||= -> {}
    Class.new(Heddle::Scheduler) do
      define_method(before) do |*arguments|
        block.call
        Fiber.blocking { sleep 0.001 }
        super(*arguments)
      end
    end.new
  end
end
