# frozen_string_literal: true

module Heddle
  # A piece of work that runs concurrently with others in one loop, in a fiber of its own. Started by {Heddle.async} or
  # {Scope#async}; it ends before the scope that it was started in.
  class Task
    # @return [Task, nil] the running task; nil in a fiber that is not a task
    def self.current = Concurrency::TaskFrame.current&.handle

    # @api private
    # @param frame [Concurrency::TaskFrame]
    def initialize(frame)
      @frame = frame
    end

    # @return [Scope] the scope of the tasks that it starts
    def scope = @frame.scope

    # @return [Scope, nil] the scope that it was started in; nil for the block of {Heddle.run}
    def parent = @frame.parent&.scope

    # Waits until the task has ended.
    #
    # @param timeout [Numeric, nil] seconds to wait at most; nil: forever
    # @return [self, nil] nil when the time is over and the task has not ended
    # @raise the error that the task failed with. A caller in the scope that this failure ends is cancelled there
    #   instead, and the scope raises the error.
    def wait(timeout: nil) = @frame.wait(timeout) && self

    # Waits for the task and returns what its block returned.
    #
    # @raise the error that the task failed with
    # @raise [TaskCancelledError] when it was cancelled
    def value = @frame.value

    # (see Scope#cancel)
    def cancel = @frame.cancel

    # (see Scope#cancelled?)
    def cancelled? = @frame.cancelled?

    # @return [Boolean] has it ended, with all the tasks that it has started?
    def ended? = @frame.ended?

    # @return [Boolean] has it ended with an error?
    def failed? = @frame.failed?

    # @return [Exception, nil] the error that it failed with
    def failure = @frame.failure

    # @return [Boolean] true: its scope doesn't wait for it
    def background? = @frame.background?

    # @return [String] the name that it was given, or file and line of its block: `"app.rb:12"`
    def name = @frame.name

    # @return [Symbol] `:ready` (not begun), `:running`, `:waiting`; at its end `:finished`, `:failed` or `:cancelled`
    def state = @frame.state

    # @return [Array<Task>] the tasks that were started in it, and in scopes inside it, and have not ended
    def children = @frame.children.map(&:handle)

    # @return [Array<String>] where the task waits now; empty before it began and after its end
    def backtrace = @frame.backtrace

    def to_s = @frame.to_s

    def inspect = "#<#{self.class} #{name.inspect} #{state}>"
  end
end
