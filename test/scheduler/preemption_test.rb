# frozen_string_literal: true

# test: one selector

require "test_helper"
require "support/preempted"
require "monitor"
require "timeout"

# A fiber that computes lets the others run: what that may do to code, and what not. Without preemption most of these
# would not end.
class PreemptionTest < Minitest::Test
  include Preempted

  def preemptions = Fiber.scheduler.statistics[:preemptions]

  # Runs the block as a TracePoint's.
  def traced(&)
    point = TracePoint.new(:call, &)
    point.enable(target: method(:call_traced)) { call_traced }
  end

  def call_traced = nil

  # Another fiber runs while one computes that has run the block as a TracePoint's.
  def assert_preempted_after(&)
    ran = false
    scheduled do
      Fiber.schedule do
        traced(&)
        deadline = now + 10
        nil until ran || now > deadline
        refute_operator now, :>, deadline
      end
      Fiber.schedule { ran = true }
    end

    assert ran
  end

  # @yieldparam take [Proc] takes values of enumerators for a while; in three fibers
  def assert_no_value_lost(&block)
    wrong = 0
    scheduled do
      3.times do
        Fiber.schedule do
          deadline = now + 0.4
          take = lambda do
            while now < deadline
              numbers = Enumerator.new { |yielder| 1000.times { |i| yielder << i } }
              1000.times { |i| wrong += 1 unless numbers.next == i }
            end
          end
          block.call(take)
        end
      end
    end

    assert_equal 0, wrong
  end

  def test_a_fiber_that_computes_lets_another_run
    flag = false
    scheduled do
      Fiber.schedule { nil until flag }
      Fiber.schedule do
        sleep 0.01
        flag = true
      end
    end

    assert flag
  end

  # The tick is read before the others' number: the fiber may be preempted anywhere, also between the two.
  def test_a_preempted_fiber_runs_after_all_that_are_ready
    ready = 0
    early = false
    scheduled do |scheduler|
      2.times { scheduler.spawn(-> { ready += 1 }) }
      Fiber.schedule do
        first = scheduler.statistics[:ticks]
        early ||= scheduler.statistics[:ticks] != first && ready < 2 until ready == 2
      end
    end

    refute early, "it has run in a later tick before them"
  end

  def test_a_tick_runs_one_preempted_fiber
    ticks = []
    scheduled do |scheduler|
      3.times do
        Fiber.schedule do
          started = scheduler.statistics[:ticks]
          nil while scheduler.statistics[:ticks] == started
          ticks << scheduler.statistics[:ticks]
        end
      end
    end

    assert_equal 3, ticks.uniq.size, ticks.inspect
  end

  def test_a_fiber_that_is_alone_is_left_alone
    scheduled do
      sleep 0.001
      before = preemptions
      compute(SLICE * 20)

      assert_equal before, preemptions
    end
  end

  def test_fibers_that_compute_share_the_time
    counts = Array.new(3, 0)
    scheduled do
      3.times do |i|
        Fiber.schedule { counts[i] += 1 until counts.all?(&:positive?) && counts.sum > 300_000 }
      end
    end

    assert_operator counts.min, :>, 0
  end

  # They switch to each other without the loop in between.
  def test_two_fibers_that_wake_each_other_and_one_that_computes_all_get_time
    handed_over = 0
    done = false
    scheduled do
      there, back = Array.new(2) { Thread::Queue.new }
      Fiber.schedule { back << there.pop until done }
      Fiber.schedule do
        until done
          there << 1
          handed_over += back.pop
        end
        there << 1
      end
      before = preemptions
      compute(SLICE) until preemptions - before > 5 && handed_over > 5
      done = true
    end

    assert_operator handed_over, :>, 5
  end

  def test_disabled_preemption_interrupts_no_fiber
    Heddle.disable(:preempt)
    order = []
    scheduled do
      Fiber.schedule { order << :waiting_over if sleep(0) }
      compute(SLICE * 20)
      order << :computed
    end

    assert_equal %i[computed waiting_over], order
  end

  def test_switched_on_in_a_loop_that_runs
    Heddle.disable(:preempt)
    flag = false
    scheduled do
      Heddle.enable(:preempt, slice: SLICE)
      sleep 0
      Fiber.schedule do
        sleep 0.01
        flag = true
      end
      nil until flag
    end

    assert flag
  end

  # -- what is raised at a switch -------------------------------------------------------------------------------------

  def test_no_value_of_an_enumerator_is_lost
    assert_no_value_lost(&:call)
  end

  def test_no_exception_raised_in_a_nested_fiber_is_lost
    lost = 0
    scheduled do
      3.times do
        Fiber.schedule do
          raised = 0
          nested = Fiber.new do
            loop do
              Fiber.yield
            rescue ArgumentError
              raised += 1
            end
          end
          nested.resume
          deadline = now + 0.4
          count = 0
          while now < deadline
            nested.raise(ArgumentError)
            count += 1
          end
          lost += count - raised
        end
      end
    end

    assert_equal 0, lost
  end

  # Ruby sends no other trace event while it handles one, so the switches within a TracePoint's block go unseen.
  def test_a_fiber_that_has_waited_in_a_trace_points_block_is_preempted_afterwards
    assert_preempted_after { sleep 0.001 }
  end

  def test_a_fiber_that_has_resumed_another_in_a_trace_points_block_is_preempted_afterwards
    assert_preempted_after { Fiber.new { Fiber.yield }.resume }
  end

  # Ruby keeps a thread from handling two events at once, and debuggers rely on that.
  def test_a_trace_points_block_is_not_preempted
    running = together = 0
    scheduled do
      2.times do
        Fiber.schedule do
          traced do
            together += 1 if (running += 1) > 1
            compute(0.05)
            running -= 1
          end
        end
      end
    end

    assert_equal 0, together
  end

  def test_no_value_of_an_enumerator_is_lost_in_a_trace_points_block
    assert_no_value_lost { |take| traced { take.call } }
  end

  # Ruby calls a handler within a switch, too. One that was set before preemption was enabled may be preempted.
  def test_no_value_is_lost_when_a_signal_handler_computes_within_a_switch
    output, status = ruby(<<~RUBY)
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      handled = 0
      trap("USR1") do
        ended = now + 0.008
        nil until now > ended
        handled += 1
      end
      require "heddle"
      Heddle.enable(:preempt, slice: 0.002)
      wrong = 0
      Heddle.run do
        3.times do
          Heddle.async do
            nested = Fiber.new { |value| loop { value = Fiber.yield(value) } }
            i = 0
            wrong += 1 unless nested.resume(i += 1) == i until handled > 20
          end
        end
        Thread.new { sleep 0.01 while handled <= 20 && Process.kill("USR1", Process.pid) }.join
      end
      puts wrong
    RUBY

    assert_equal "0\n", output
    assert_predicate status, :success?
  end

  # A fiber visits the starter before it is preempted, and Ruby may call a handler there.
  def test_program_ends_when_a_signal_handler_raises_in_the_starter
    output, status = ruby(<<~RUBY)
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      raised = 0
      require "heddle"
      Heddle.enable(:preempt, slice: 0.002)
      trap("USR1") do
        next if caller.any? { |line| line.include?("<main>") || line.include?("run_job") }

        raised += 1
        raise IOError, "in the starter"
      end
      sender = fork { 10_000.times { Process.kill(:USR1, Process.ppid) && sleep(0.0001) } }
      deadline = now + 3
      until raised > 5 || now > deadline
        before = raised
        begin
          Heddle.run { 2.times { Heddle.async { nil until raised > before || now > deadline } } }
        rescue IOError
          nil
        end
      end
      Process.kill(:KILL, sender)
      puts "ended"
    RUBY

    assert_equal "ended\n", output
    assert_predicate status, :success?
  end

  def test_an_exception_for_a_preempted_fiber_is_raised_there
    struck = nil
    scheduled do
      computing = Fiber.schedule do
        compute(30)
      rescue ArgumentError => e
        struck = e.message
      end
      computing.raise(ArgumentError, "from beside")
    end

    assert_equal "from beside", struck
  end

  def descend(depth, &block) = depth == 0 ? block.call : descend(depth - 1, &block)

  def descends?(depth, &)
    descend(depth, &)
    true
  rescue SystemStackError
    false
  end

  # They call nothing. How much of the stack they leave depends on the number of their variables.
  COUNTING = [
    ->(rounds) { proc { |i = 0| i += 1 while i < rounds } },
    ->(rounds) { proc { |i = 0, _ = 0, _ = 0, _ = 0| i += 1 while i < rounds } }
  ].freeze

  def test_no_error_is_raised_in_a_fiber_that_is_preempted_where_its_stack_ends
    COUNTING.each do |counting|
      counted = error = nil
      scheduled do
        Fiber.schedule { sleep 0 while counted.nil? }
        Fiber.schedule do
          short, long = [1, 3_000_000].map(&counting)
          depth = 0
          depth += 1 while descends?(depth + 1, &short) # called like the line below, from the same depth
          counted = descends?(depth, &long)
          sleep 0.001
        rescue SystemStackError => e
          error = e
        end
      end

      assert counted
      assert_nil error
    end
  end

  def test_a_fiber_that_gave_way_can_be_killed
    cleaned = computed = false
    scheduled do
      computing = Fiber.schedule do
        compute(LIMIT / 2)
        computed = true
      ensure
        cleaned = true
      end
      computing.kill
    end

    assert cleaned
    refute computed
  end

  # -- timeouts and cancelling ----------------------------------------------------------------------------------------

  def test_timeout_interrupts_a_computation
    error = nil
    took = nil
    scheduled do
      began = now
      begin
        Timeout.timeout(0.05) { compute(30) }
      rescue Timeout::Error => e
        error = e
      end
      took = now - began
    end

    assert_kind_of Timeout::Error, error
    assert_operator took, :<, 5
  end

  def test_timeouts_of_several_computations_each_end_their_own
    messages = scheduled do
      5.times.map do |i|
        Heddle.async do
          Timeout.timeout(0.02 + (i * 0.01), ArgumentError, "number #{i}") { compute(30) }
        rescue ArgumentError => e
          e.message
        end
      end.map(&:value)
    end

    assert_equal %w[0 1 2 3 4].map { |i| "number #{i}" }, messages
  end

  def test_the_outer_one_of_two_timeouts_unwinds_its_own_block
    unwound = []
    scheduled do
      Timeout.timeout(0.03) do
        Timeout.timeout(20) { compute(30) }
      rescue Timeout::Error
        unwound << :inner
      end
    rescue Timeout::Error
      unwound << :outer
    end

    assert_equal %i[outer], unwound
  end

  def test_a_masked_timeout_is_raised_in_its_own_fiber_only
    order = []
    scheduled do
      Fiber.schedule do
        Timeout.timeout(0.02, ArgumentError) do
          Thread.handle_interrupt(ArgumentError => :never) do
            compute(0.1)
            order << :computed
            sleep 0.01
            order << :slept
          end
        end
      rescue ArgumentError
        order << :struck
      end
      compute(0.15)
    end

    assert_equal %i[computed slept struck], order
  end

  # @return [Array<Symbol>] how far nested masks with these timings let the code run
  def masked_twice(outer, inner, order = [])
    Timeout.timeout(0.02, ArgumentError) do
      Thread.handle_interrupt(ArgumentError => outer) do
        Thread.handle_interrupt(inner) do
          compute(0.1)
          order << :inner
        end
        order << :outer
        sleep 0.01
        order << :slept
      end
    end
  rescue ArgumentError
    order << :timeout
  end

  def test_timeout_that_an_outer_mask_delays_is_not_raised_at_the_end_of_the_inner_one
    blocking = { ArgumentError => :on_blocking }
    at_sleep = %i[inner outer timeout]
    cases = { [:on_blocking, blocking] => at_sleep, [:never, blocking] => %i[inner outer slept timeout],
              [:on_blocking, { ArgumentError => :never }] => at_sleep,
              [:on_blocking, { IOError => :immediate }] => at_sleep, [:immediate, blocking] => %i[inner timeout] }
    cases.each do |timings, expected|
      order = []
      scheduled do
        Fiber.schedule { masked_twice(*timings, order) }
        compute(0.15)
      end

      assert_equal expected, order, timings.inspect
    end
  end

  def test_heddle_timeout_is_raised_at_waits_only
    reached = false
    assert_raises(Heddle::TimeoutError) do
      Heddle.run do
        Heddle.timeout(0.01) do
          compute(0.1)
          reached = true
          sleep 5
        end
      end
    end

    assert reached
  end

  # Starts a task, cancels it while it computes for these seconds, and asserts that it ends at its next wait.
  def assert_cancelled_at_its_next_wait(seconds)
    reached = false
    task = Heddle.async do
      compute(seconds)
      reached = true
      sleep 5
      reached = :too_far
    end
    sleep 0.01
    task.cancel
    task.wait

    assert_equal true, reached # rubocop:disable Minitest/AssertTruthy
  end

  def test_a_cancelled_task_computes_on_until_it_waits
    Heddle.run { assert_cancelled_at_its_next_wait(0.1) }
  end

  def test_a_cancelled_task_computes_on_until_it_waits_after_a_time_limit_around_other_tasks_has_passed
    Heddle.run do
      assert_raises(Timeout::Error) { Timeout.timeout(0.001) { Heddle.scope { |scope| scope.async { sleep } } } }
      assert_cancelled_at_its_next_wait(0.1)
    end
  end

  # -- what else Ruby does at such a point ----------------------------------------------------------------------------

  def test_finalizers_run_while_fibers_compute
    finalized = 0
    scheduled do
      100.times { ObjectSpace.define_finalizer(Object.new, proc { finalized += 1 }) }
      Fiber.schedule { nil until finalized.positive? }
      Fiber.schedule { GC.start until finalized.positive? }
    end

    assert_operator finalized, :>, 0
  end

  def test_an_exception_from_another_thread_interrupts_a_computation
    struck = false
    scheduled do
      thread = Thread.current
      deadline = now + 5 # nobody tells this fiber where it strikes the loop, which then waits for it
      Fiber.schedule do
        nil until struck || now > deadline
      rescue ArgumentError
        struck = true # whoever runs when the thread gets its turn
      end
      Thread.new { thread.raise(ArgumentError, "from a thread") }
      begin
        nil until struck
      rescue ArgumentError
        struck = true
      end
    rescue ArgumentError
      struck = true
    end

    assert struck
  rescue ArgumentError => e # it struck between two slices: then it is the loop's
    assert_equal "from a thread", e.message
  end

  def test_a_killed_thread_ends
    thread = Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule { loop { nil } }
      Fiber.schedule { loop { sleep 0.01 } }
    end
    until_true { thread.stop? || thread.status }
    compute(0.02)
    thread.kill

    assert thread.join(LIMIT)
  end

  # The loop of a thread has two tasks that compute for good. Each pushes to the queue when it is cancelled.
  def run_computing_tasks(begun, cancelled = Queue.new)
    Thread.current.report_on_exception = false
    Heddle.run do
      2.times do
        Heddle.async do
          begun << true
          loop { nil }
        ensure
          cancelled << true
        end
      end
    end
  end

  def test_a_killed_thread_ends_although_several_tasks_compute
    begun = Queue.new
    cancelled = Queue.new
    thread = Thread.new { run_computing_tasks(begun, cancelled) }
    2.times { begun.pop }
    thread.kill

    assert thread.join(LIMIT)
    assert_equal 2, cancelled.size
  end

  def test_a_time_limit_around_a_loop_ends_it_although_several_tasks_compute
    thread = Thread.new { Timeout.timeout(0.05) { run_computing_tasks(Queue.new) } }

    assert_raises(Timeout::Error) { thread.join(LIMIT) }
  end

  # -- locks and data -------------------------------------------------------------------------------------------------

  def test_a_monitor_belongs_to_the_fiber_that_entered_it
    monitor = Monitor.new
    entered = count = 0
    tried = nil
    scheduled do
      Fiber.schedule do
        monitor.synchronize do
          entered = 1
          nil while tried.nil?
          entered = 2
        end
      end
      tried = monitor.try_enter
      4.times do
        Fiber.schedule do
          2000.times do
            monitor.synchronize do
              seen = count
              10.times { seen += 1 }
              count = seen - 9
            end
          end
        end
      end
    end

    refute tried
    assert_equal 2, entered
    assert_equal 8000, count
  end

  def test_mutex_and_queue_between_fibers_and_threads
    mutex = Mutex.new
    queue = Thread::SizedQueue.new(10)
    count = 0
    add = lambda do
      1000.times do |i|
        mutex.synchronize do
          seen = count
          20.times { seen += 1 }
          count = seen - 19
        end
        queue << i
      end
    end
    sum = 0
    scheduled do
      2.times { Fiber.schedule(&add) }
      thread = Thread.new(&add)
      3000.times { sum += queue.pop }
      thread.join
    end

    assert_equal [3000, 3 * 499_500], [count, sum]
  end

  def test_heddles_primitives_keep_their_promises
    most = inside = passed = received = 0
    Heddle.run do
      semaphore = Heddle::Semaphore.new(2)
      channel = Heddle::Channel.new(3)
      deadline = now + 0.5
      Heddle.async { channel.each { received += 1 } }
      Heddle.scope do |scope|
        4.times do
          scope.async do
            while now < deadline
              semaphore.acquire do
                inside += 1
                most = [most, inside].max
                50.times { nil }
                inside -= 1
              end
              channel.push(1)
              passed += 1
            end
          end
        end
      end
      channel.close
    end

    assert_includes 1..2, most
    assert_equal passed, received
  end

  # Another fiber, whose turn is a matter of time.
  def other_in(order)
    Fiber.schedule do
      sleep 0
      order << :other
    end
  end

  # Code that looks as if it was read from a file of this folder.
  def made_up(folder, code)
    Module.new.tap { |made| made.module_eval(code, File.expand_path("made_up.rb", folder), 1) }
  end

  # What Heddle itself is written in, and what of Ruby's library it calls.
  def test_heddles_own_code_is_not_interrupted
    Set.new # loaded now: a file that is not in memory is a wait
    own = made_up(File.join(__dir__, "../../lib/heddle/concurrency"), <<~RUBY)
      def self.compute(seconds, order)
        order << :began
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        set = Set.new
        1.times { set.merge([1, 2, 3]) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline }
        yield
      end
    RUBY
    order = []
    scheduled do
      sleep 0.001
      other_in(order)
      own.compute(SLICE * 20, order) do
        order << :computed
        compute(SLICE * 20)
        order << :computed_in_a_block
      end
    end

    assert_equal %i[began computed], order[order.index(:began), 2]
    assert_includes order, :other
  end

  def test_heddles_own_code_is_found_below_many_frames_of_rubys_library
    own = made_up(File.join(__dir__, "../../lib/heddle/concurrency"), "def self.ask(library) = library.ask(30)")
    library = made_up(File.join(Gem::RUBYGEMS_DIR, "rubygems/core_ext"), <<~RUBY)
      def self.ask(depth) = depth.zero? ? Heddle::Native.own_code? : ask(depth - 1)
    RUBY

    assert own.ask(library)
    refute library.ask(30)
  end

  # Debian keeps RubyGems outside of the library's folder.
  def test_code_called_by_heddles_own_code_is_not_preempted
    order = []
    own = made_up(File.join(__dir__, "../../lib/heddle/concurrency"), <<~RUBY)
      def self.compute(rubygems, seconds, order)
        order << :began
        rubygems.compute(seconds)
        order << :computed
      end
    RUBY
    rubygems = made_up(File.join(Gem::RUBYGEMS_DIR, "rubygems/core_ext"), <<~RUBY)
      def self.compute(seconds)
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        1.times { nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline }
      end
    RUBY
    scheduled do
      sleep 0.001
      other_in(order)
      own.compute(rubygems, SLICE * 20, order)
    end

    assert_equal %i[began computed], order[order.index(:began), 2]
    assert_includes order, :other
  end

  def test_a_block_without_preemption_is_not_interrupted
    order = []
    scheduled do
      other_in(order)
      Heddle.without_preemption do
        order << :began
        compute(SLICE * 20)
        order << :computed
      end
    end

    assert_equal %i[began computed], order[order.index(:began), 2]
    assert_includes order, :other
  end

  def test_a_block_without_preemption_ends
    flag = false
    scheduled do
      Fiber.schedule do
        sleep 0.01
        flag = true
      end
      assert_raises(ArgumentError) { Heddle.without_preemption { raise ArgumentError } }
      assert_equal 5, Heddle.without_preemption { 5 }
      nil until flag
    end

    assert flag
  end

  def test_without_preemption_outside_of_a_loop_is_nothing_but_a_call
    assert_equal 3, Heddle.without_preemption { 3 }
  end

  def test_under_gc_stress
    lines = []
    scheduled do
      GC.stress = true
      3.times do |i|
        Fiber.schedule { lines << "#{i}#{lines.size}" until lines.size > 40 }
      end
    ensure
      GC.stress = false
    end

    assert_operator lines.size, :>, 40
  end

  # -- processes ------------------------------------------------------------------------------------------------------

  def test_a_program_ends_while_the_fibers_of_another_thread_compute
    output, status = ruby(<<~RUBY)
      require "heddle"
      Heddle.enable(:preempt, slice: 0.002)
      at_exit { puts "end" }
      turns = 0
      Thread.new { Heddle.run { Heddle.async { nil while true }; sleep 0.001 while turns += 1 } }
      Thread.pass until turns > 3
    RUBY

    assert_predicate status, :success?, output
    assert_equal "end\n", output
  end

  def test_a_program_ends_while_a_preempted_fiber_of_another_thread_waits_for_its_turn
    output, status = ruby(<<~RUBY)
      require "heddle"
      Heddle.enable(:preempt, slice: 0.002)
      at_exit { puts "end" }
      ready = false
      Thread.new do
        Heddle.run do
          started = false
          Heddle.async do
            started = true
            nil while true
          end
          Heddle.async do
            sleep
          ensure
            puts "cleaned"
          end
              sleep 0 until started
          Fiber.scheduler.without_preemption do
            ready = true
            Thread.pass while true
          end
        end
      end
      Thread.pass until ready
    RUBY

    assert_predicate status, :success?, output
    assert_equal "end\ncleaned\n", output
  end

  def test_exit_in_a_fiber_ends_those_that_compute_as_soon_as_they_wait
    output, status = ruby(<<~RUBY)
      require "heddle"
      Heddle.enable(:preempt, slice: 0.002)
      flag = false
      Heddle.run do
        Heddle.async do
          nil until flag
          puts "computed"
          sleep
        ensure
          puts "ended"
        end
        Heddle.async do
          sleep 0.02
          flag = true
          exit 3
        end
      end
    RUBY

    assert_equal [3, "computed\nended\n"], [status.exitstatus, output]
  end

  def test_the_end_of_a_program_that_was_watched
    8.times do
      output, status = ruby(<<~RUBY)
        require "heddle"
        Heddle.enable(:preempt, slice: 0.001)
        flag = false
        Heddle.run { Heddle.async { sleep 0.01; flag = true }; nil until flag }
        ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.01
        at_exit { nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ended }
      RUBY

      assert_predicate status, :success?, output
      assert_empty output
    end
  end

  def test_a_forked_child_preempts_too
    output, status = ruby(<<~RUBY)
      require "heddle"
      Heddle.enable(:preempt, slice: 0.002)
      flag = false
      Heddle.run do
        Heddle.async { nil until flag }
        pid = fork do
          Heddle.run do
            done = false
            Heddle.async { sleep 0.02; done = true }
            nil until done
          end
          puts "child"
        end
        Process.wait(pid)
        flag = true
        puts "parent"
      end
    RUBY

    assert_equal "child\nparent\n", output
    assert_predicate status, :success?
  end
end
