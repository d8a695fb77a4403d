# frozen_string_literal: true

require "heddle/concurrency/scope"
require "heddle/concurrency/wait_list"

module Heddle
  # A piece of work that runs concurrently with others in one loop, in a fiber of its own. Started by {Heddle.async} or
  # {Scope#async}; it ends before the scope that it was started in.
  class Task < Scope
    # @return [Scope] what it was started in
    attr_reader :parent

    # @api private
    attr_reader :scheduler

    # @api private
    attr_reader :fiber

    # @api private
    attr_accessor :innermost

    # @return [Task, nil] the task that is running now; nil in a fiber that is none
    def self.current
      scheduler = Fiber.current_scheduler
      Concurrency::Context.of(scheduler).task if scheduler.is_a?(Scheduler)
    end

    # Every instance variable is set here, in one order: objects of one shape keep Ruby's caches warm.
    #
    # @api private
    def initialize(parent, scheduler, name, block) # rubocop:disable Lint/MissingSuper
      @parent = parent
      @scheduler = scheduler
      @name = name
      @block = block
      @innermost = self
      @state = :ready
      @fiber = @value = @waiters = @awaited = nil
      @origin = @sent = @over = @children = @foreground = @joiner = @failures = nil
    end

    # @api private
    def task = self

    # @api private
    def start
      @fiber = @scheduler.spawn(self)
      self
    end

    # The scheduler calls this in the new fiber. Lets no exception out: it belongs to the parent.
    #
    # @api private
    def call
      unless @origin
        @state = :running
        @value = @block.call
      end
    rescue Exception => e
      @over = true
      absorb(e)
    ensure
      @over = true
      join if @children
      settle
    end

    # There was no stack for its fiber: it fails of that as of anything else. Or the fiber was killed, which cancels it.
    # Called by the scheduler.
    #
    # @api private
    def unstarted(error)
      if error.is_a?(Cancelled) then absorb(error)
      else (@failures ||= []) << error
      end
      settle
    end

    # It forked, and has ended in the child, where the tasks around it do not exist. Called by the scheduler.
    #
    # @api private
    # @return [Boolean] does the program go on after Heddle.run?
    # @raise the error that it failed with
    def end_in_child
      raise_failure if @failures
      false
    end

    # Waits until the task has ended.
    #
    # @param timeout [Numeric, nil] seconds to wait at most; nil: as long as it takes
    # @return [self, nil] nil when the time is over and the task has not ended
    # @raise the error that the task failed with. A caller in the scope that this failure ends is cancelled there
    #   instead, and the scope raises the error.
    def wait(timeout: nil)
      unless ended?
        check_thread("waited for")
        raise ThreadError, "#{self} can't wait for itself" if equal?(Task.current)

        return unless (@waiters ||= Concurrency::WaitList.new).wait(timeout)
      end
      raise_failure if @failures
      self
    end

    # Waits for the task and returns what its block returned.
    #
    # @raise the error that the task failed with
    # @raise [TaskCancelledError] when it was cancelled
    def value
      wait
      raise TaskCancelledError, "#{self} was cancelled, so it has no value" if @state == :cancelled

      @value
    end

    # @return [String] the name that it was given, or where its block stands: `"app.rb:12"`
    def name = @name ||= Concurrency.place(@block)

    # @return [Symbol] `:ready` (not begun), `:running`, `:waiting`; at its end `:finished`, `:failed` or `:cancelled`
    def state
      return @state unless @state == :running

      @scheduler.current.equal?(self) && Fiber.current_scheduler.equal?(@scheduler) ? :running : :waiting
    end

    def ended? = @over == :ended

    # Did a fiber wait for it when it ended, and so has got its error?
    #
    # @api private
    def awaited? = @awaited || false

    # @api private
    # @param fiber [Fiber]
    def awaited_by?(fiber) = @waiters&.waiting?(fiber) || false

    def finished? = @state == :finished

    def failed? = @state == :failed

    # @return [Boolean] true for one that its scope doesn't wait for
    def background? = @parent ? @parent.background_child?(self) : false

    # @return [Array<Task>] the tasks that were started in it, and in scopes inside it, and have not ended
    def children
      found = super
      frame = @innermost
      until frame.equal?(self)
        found.concat(frame.children)
        frame = frame.outer
      end
      found
    end

    # @api private
    # @return [Task, nil] the task below which the tree shows it, where that is not its scope's
    def shown_below = nil

    # @return [Array<String>] where the task waits now; empty before it began and after its end
    def backtrace = @fiber&.alive? ? @fiber.backtrace || [] : []

    # @return [Exception, nil] what it failed with
    def failure
      super if @failures
    end

    def to_s = "task #{name.inspect}"

    def inspect = "#<#{self.class} #{name.inspect} #{state}>"

    # @api private
    def check_thread(verb)
      return if Fiber.scheduler.equal?(@scheduler)

      raise ThreadError, "#{self} can't be #{verb} from outside its loop's thread: " \
                         "use a Heddle::Promise between threads"
    end

    # @api private
    def grace = @grace || (@parent ? @parent.grace : DEFAULT_GRACE)

    private

    # The end: nothing after this may wait.
    def settle
      @over = :ended
      @state = if @failures then :failed
               elsif @origin then :cancelled
               else :finished
               end
      @value = nil unless @state == :finished
      Concurrency::Context.of(@scheduler).clock.remove(@sent) if @sent
      @fiber = @sent = nil
      @awaited = @waiters.wake_all.positive? if @waiters
      @parent&.child_ended(self)
    end

    # A Cancelled without a call of #cancel (raised by hand, or by a scheduler that shuts down) cancels the task, too.
    def absorb(error)
      strike(self) if error.is_a?(Cancelled) && !@origin
      super
    end

    def cancel_message = "#{self} was cancelled"
  end
end
