# frozen_string_literal: true

require "heddle/arguments"
require "heddle/concurrency/errors"
require "heddle/concurrency/further_failures"
require "heddle/monotonic_clock"

module Heddle
  # Implements tasks and the objects that they wait for. The public methods are in the module {Heddle}.
  #
  # @api private
  module Concurrency
    # The prefix of Heddle's own lines in a backtrace.
    OWN_PREFIX = "#{File.expand_path("..", __dir__)}/heddle".freeze

    class << self
      # @return [#call, nil] a callable that returns {Databases}. runtime.rb sets it, because this layer must not depend
      #   on {Databases}
      attr_accessor :drivers

      # @param what [String] the method that the program called, for the error message
      # @return [Scheduler] the loop that the calling fiber runs in
      # @raise [NoLoopError]
      def scheduler!(what, scheduler = Fiber.current_scheduler)
        return scheduler if scheduler.is_a?(Scheduler)

        raise NoLoopError, no_loop(what)
      end

      # Parks the calling fiber while the block returns true. The block is called again after each wake-up, because a
      # wake-up may belong to an earlier wait of this fiber (Ruby's queues and mutexes cause such wake-ups).
      #
      # @param timeout [Numeric, nil] maximum time to wait, in seconds; nil: no limit
      def park_while(scheduler, timeout)
        if timeout.nil?
          scheduler.park while yield
        else
          deadline = nil
          while yield
            rest = deadline ? deadline - now : timeout
            break unless deadline.nil? || rest.positive?

            deadline ||= now + Arguments.wait("timeout:", timeout)
            scheduler.park(rest.positive? ? rest : 0)
          end
        end
      end

      # @return [Float] the time of the monotonic clock, in seconds
      def now = MonotonicClock.now

      # Runs the block. If Fiber#kill is ending the calling fiber, calls +killed+ instead, because a killed fiber can't
      # wait any more. Ruby has no method to detect a kill, but in a killed fiber a switch to another fiber does not
      # return. So this method switches to {kill_probe} and back.
      #
      # @param killed [#call]
      # @raise [FiberError] if the thread has no event loop, calls this for the first time, and the system has no memory
      #   for the probe's stack
      def unless_killed(killed)
        probe = kill_probe
        begin
          ending = true
          probe.resume(Fiber.current)
        rescue Exception # raised by another thread or a signal handler; a kill does not enter a rescue clause
          ending = false
          raise
        end
        ending = false
        yield
      ensure
        killed.call if ending
      end

      # Allocates the stack that {unless_killed} needs in this thread, because a later allocation might fail.
      #
      # @param scheduler [Scheduler] the scheduler of this thread
      # @return [void]
      def prepare_kill_probe(scheduler)
        scheduler.resume_new(kill_probe) # the first switch to a fiber allocates its stack
      rescue FiberError
        nil # the first call of unless_killed tries again
      end

      # @return [String] the message of NoLoopError for a method that needs an event loop
      def no_loop(what)
        found = Fiber.scheduler
        if found.nil?
          "#{what}: this thread runs no event loop. Call it inside Heddle.run { ... }"
        elsif found.is_a?(Scheduler)
          "#{what}: this fiber does not belong to the thread's event loop. Call it inside Heddle.run { ... } or " \
            "Fiber.schedule { ... }"
        else
          "#{what}: this thread has another scheduler, #{found.class}. Run Heddle in another thread: Thread.new { " \
            "Heddle.run { ... } }"
        end
      end

      # @return [String] file name and line of a block, such as `"app.rb:12"`; `"task"` if the block has none
      def place(block)
        file, line = block&.source_location
        file ? "#{File.basename(file)}:#{line}" : "task"
      end

      # @param fiber [Fiber, nil]
      # @return [Array<String>] the innermost line first; empty if the fiber has not begun, or has ended
      def backtrace(fiber) = (fiber.backtrace if fiber&.alive?) || []

      # @return [Boolean] whether this line of a backtrace is Heddle's own code
      def own_line?(line) = line.start_with?(OWN_PREFIX)

      private

      # Each thread keeps one fiber for {unless_killed}, because creating a fiber fails if there are too many. The fiber
      # is blocking, so that it is not preempted. Its local variable refers to the fiber that it last switched back to,
      # which must not be garbage collected: Ruby 3.4.10 and 4.0.5 read that fiber's record at the next switch (Ruby bug
      # 22196).
      #
      # @return [Fiber] the probe of this thread
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
