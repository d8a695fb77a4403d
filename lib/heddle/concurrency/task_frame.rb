# frozen_string_literal: true

require "heddle/concurrency/task"
require "heddle/concurrency/wait_list"

module Heddle
  module Concurrency
    # The implementation of {Heddle::Task}: the outermost frame of the task's code, and the job that the scheduler runs.
    #
    # @api private
    class TaskFrame < ScopeFrame
      # @!attribute parent [ScopeFrame, nil] the scope that the task was started in
      # @!attribute fiber [Fiber, nil] nil: the task was not started, or has ended
      attr_reader :parent, :scheduler, :fiber

      # @return [Frame] the frame whose code runs
      attr_accessor :innermost

      # @return [TaskFrame, nil] the running task
      def self.current
        scheduler = Fiber.current_scheduler
        Context.of(scheduler).task if scheduler.is_a?(Scheduler)
      end

      # Sets all instance variables in the same order. So all objects have one shape, for which Ruby's caches work best.
      def initialize(parent, scheduler, name, block) # rubocop:disable Lint/MissingSuper
        @parent = parent
        @scheduler = scheduler
        @name = name
        @block = block
        @innermost = self
        @state = :ready
        @fiber = @value = @waiters = @awaited = @handle = nil
        @origin = @grace_alarm = @over = @children = @foreground = @joiner = @failures = nil
      end

      def task = self

      # @return [Task] the public object
      def handle = @handle ||= Task.new(self)

      def start
        @fiber = @scheduler.spawn(self)
        self
      end

      # The scheduler calls this method in the new fiber. Failures are not raised here: the parent scope raises them.
      # The parent of a detached task does so in this fiber, at the end of {settle}.
      def call
        unless @origin
          @state = :running
          @value = @block.call
        end
        @over = true
      rescue Exception => e
        @over = true
        absorb(e)
      ensure
        absorb(Cancelled.new) unless @over # Fiber#kill has ended the block
        begin
          join if @children
        ensure
          settle
        end
      end

      # The scheduler calls this method if the fiber can't begin. If there was no memory for the fiber's stack, the task
      # fails with the error. If the fiber was killed before it began, the task is cancelled.
      def unstarted(error)
        if error.is_a?(Cancelled) then absorb(error)
        else (@failures ||= []) << error
        end
        settle
      end

      # The scheduler calls this method when the task has forked and now ends in the child process, in which the tasks
      # around it do not exist.
      # @return [Boolean] whether the child continues with the code after Heddle.run
      # @raise the error that the task failed with
      def end_in_child
        raise_failure if @failures
        false
      end

      # (see Task#wait)
      def wait(timeout = nil)
        unless ended?
          check_thread("waited for")
          raise ThreadError, "#{self} can't wait for itself" if equal?(TaskFrame.current)

          return unless (@waiters ||= WaitList.new("Heddle::Task#wait")).wait(timeout)
        end
        raise_failure if @failures
        self
      end

      # (see Task#value)
      def value
        wait
        raise TaskCancelledError, "#{self} was cancelled, so it has no value" if @state == :cancelled

        @value
      end

      def name = @name ||= Concurrency.place(@block)

      # (see Task#state)
      def state
        return @state unless @state == :running

        @scheduler.current_fiber.equal?(@fiber) && Fiber.current_scheduler.equal?(@scheduler) ? :running : :waiting
      end

      # Did another fiber wait for the task when it ended, and so receive its error?
      def awaited? = @awaited || false

      # @param fiber [Fiber]
      def awaited_by?(fiber) = @waiters&.waiting?(fiber) || false

      def failed? = @state == :failed

      def background? = @parent ? @parent.background_child?(self) : false

      # (see Task#children)
      # @return [Array<TaskFrame>]
      def children
        found = super
        frame = @innermost
        until frame.equal?(self)
          found.concat(frame.own_children)
          frame = frame.outer
        end
        found
      end

      # @return [TaskFrame, nil] the task below which the task tree shows this one; nil: the task of its scope
      def shown_below = nil

      def backtrace = Concurrency.backtrace(@fiber)

      def failure
        super if @failures
      end

      def to_s = "task #{name.inspect}"

      def check_thread(verb)
        return if Fiber.scheduler.equal?(@scheduler)

        raise ThreadError, "#{self} can be #{verb} only in its loop's thread: use a Heddle::Promise between threads"
      end

      def grace = @grace || (@parent ? @parent.grace : DEFAULT_GRACE)

      private

      # Ends the task. Code after this call must not wait.
      def settle
        @over = :ended
        @state = if @failures then :failed
                 elsif @origin then :cancelled
                 else :finished
                 end
        @value = nil unless @state == :finished
        Context.of(@scheduler).alarms.remove(@grace_alarm) if @grace_alarm
        @fiber = @grace_alarm = nil
        @awaited = @waiters.wake_all.positive? if @waiters
        @parent&.child_ended(self)
      end

      # A Cancelled also cancels the task if it came without a call of #cancel: from user code, or from a scheduler that
      # shuts down.
      def absorb(error)
        mark_cancelled(self) if error.is_a?(Cancelled) && !@origin
        super
      end

      def cancel_message = "#{self} was cancelled"
    end
  end
end
