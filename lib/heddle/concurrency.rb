# frozen_string_literal: true

require "heddle/concurrency/errors"
require "heddle/concurrency/further_failures"
require "heddle/monotonic_clock"
require "heddle/seconds"

module Heddle
  # Implements tasks and the objects that they wait for. The public methods are in {Heddle} itself.
  #
  # @api private
  module Concurrency
    # Begins the lines of Heddle's own code in a backtrace.
    OWN_PREFIX = "#{File.expand_path("..", __dir__)}/heddle".freeze

    class << self
      # @return [#call, nil] returns {Databases}. runtime.rb sets it, because this layer may not load {Databases}
      attr_accessor :drivers

      # @return [Scheduler] the loop that the calling fiber runs in
      # @raise [NoLoopError]
      def scheduler!(what)
        scheduler = Fiber.current_scheduler
        return scheduler if scheduler.is_a?(Scheduler)

        raise NoLoopError, no_loop(what)
      end

      # Waits while the block returns true. A wake-up alone proves nothing: it may be for an earlier wait of this fiber
      # (Ruby's queues and mutexes do that).
      #
      # @param timeout [Numeric, nil] seconds to wait at most
      def park_while(scheduler, timeout)
        if timeout.nil?
          scheduler.park while yield
        else
          deadline = nil
          while yield
            rest = deadline ? deadline - now : timeout
            break unless deadline.nil? || rest.positive?

            deadline ||= now + timeout
            scheduler.park(rest.positive? ? rest : 0)
          end
        end
      end

      # @return [Float] seconds of the monotonic clock
      def now = MonotonicClock.now

      # Runs the block. If Fiber#kill is ending the calling fiber, which then can't wait any more, calls +killed+
      # instead. Ruby shows a kill only by a switch that does not return, so this switches to {kill_probe} and back.
      #
      # @param killed [#call]
      # @raise [FiberError] at the first call in a thread without a loop, when there is no stack for the probe
      def unless_killed(killed)
        probe = kill_probe
        begin
          ending = true
          probe.resume(Fiber.current)
        rescue Exception # raised at the switch, by another thread or a signal's handler; a kill runs no rescue
          ending = false
          raise
        end
        ending = false
        yield
      ensure
        killed.call if ending
      end

      # Takes, in advance, the stack that {unless_killed} needs in this thread: later there may be none left.
      #
      # @param scheduler [Scheduler] of this thread
      # @return [void]
      def prepare_kill_probe(scheduler)
        scheduler.resume_new(kill_probe) # its first switch takes a stack
      rescue FiberError
        nil # the first call of unless_killed tries again
      end

      # The message when something needs a loop and there is none.
      def no_loop(what)
        found = Fiber.scheduler
        if found.nil?
          "#{what}: no loop runs in this thread. Call it inside Heddle.run { ... }"
        elsif found.is_a?(Scheduler)
          "#{what}: this fiber does not belong to the loop. Call it inside Heddle.run { ... } or Fiber.schedule { ... }"
        else
          "#{what}: this thread has another scheduler, #{found.class}. Run Heddle in another thread: Thread.new { " \
            "Heddle.run { ... } }"
        end
      end

      # @return [String] file and line of a block, short: `"app.rb:12"`
      def place(block)
        file, line = block&.source_location
        file ? "#{File.basename(file)}:#{line}" : "task"
      end

      # @return [Boolean] is this line of a backtrace Heddle's own?
      def own_line?(line) = line.start_with?(OWN_PREFIX)

      private

      # One fiber is kept for each thread, because a new one fails when there are too many fibers. It is blocking, so
      # that it is not preempted. Its variable keeps the fiber that it last switched back to from being collected: Ruby
      # 3.4.10 and 4.0.5 read that fiber's record at the next switch (Ruby's bug 22196).
      #
      # @return [Fiber] of this thread
      def kill_probe
        probe = Thread.current.thread_variable_get(:heddle_kill_probe)
        return probe if probe&.alive?

        asking = Fiber.current
        probe = Fiber.new(blocking: true) { loop { asking = Fiber.yield(asking) } }
        Thread.current.thread_variable_set(:heddle_kill_probe, probe)
        probe
      end
    end
  end
end
