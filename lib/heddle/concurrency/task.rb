# frozen_string_literal: true

module Heddle
  # A piece of work that runs concurrently with others in one loop, in its own fiber. {Heddle.async} and {Scope#async}
  # start a task. A task ends before the scope that it was started in.
  class Task
    # @return [Task, nil] the running task. A fiber that is not a task gets a Task while it has a scope or time limit
    #   open, otherwise nil
    def self.current = Concurrency::TaskFrame.current&.handle

    # @api private
    # @param frame [Concurrency::TaskFrame]
    def initialize(frame)
      @frame = frame
    end

    # @return [Scope] the task's own scope. It contains the tasks that the task starts, except in a scope that it opens
    def scope = @frame.scope

    # @return [Scope, nil] the scope that this task was started in; nil for the block of {Heddle.run}, and for a fiber
    #   that no task started
    def parent = @frame.parent&.scope

    # Waits until the task has ended.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    # @return [self, nil] nil: the timeout has passed
    # @raise the error that the task failed with. If the failure ends the scope that the caller is in, the caller is
    #   cancelled instead, and the scope raises the error.
    def wait(timeout: nil) = @frame.wait(timeout) && self

    # Waits for the task and returns what its block returned.
    #
    # @raise the error that the task failed with
    # @raise [TaskCancelledError] if the task was cancelled
    def value = @frame.value

    # (see Scope#cancel)
    def cancel = @frame.cancel

    # (see Scope#cancelled?)
    def cancelled? = @frame.cancelled?

    # @return [Boolean] whether the task and all tasks that it has started have ended
    def ended? = @frame.ended?

    # @return [Boolean] whether the task has ended with an error
    def failed? = @frame.failed?

    # @return [Exception, nil] the error that the task failed with; nil: it has not failed
    def failure = @frame.failure

    # @return [Boolean] true: its scope does not wait for it
    def background? = @frame.background?

    # @return [String] the name passed at the start, or file and line of its block: `"app.rb:12"`
    def name = @frame.name

    # @return [Symbol] `:ready` (not begun), `:running` or `:waiting`; after its end `:finished`, `:failed` or
    #   `:cancelled`
    def state = @frame.state

    # @return [Array<Task>] the tasks that this task has started, in any of its scopes, and that have not ended
    def children = @frame.children.map(&:handle)

    # @return [Array<String>] the backtrace of the task's fiber now; empty before the task begins and after its end
    def backtrace = @frame.backtrace

    def to_s = @frame.to_s

    def inspect = "#<#{self.class} #{name.inspect} #{state}>"
  end
end
