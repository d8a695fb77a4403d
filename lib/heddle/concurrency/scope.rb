# frozen_string_literal: true

module Heddle
  # A block of code that does not end before the tasks that were started in it. When a task fails, the other tasks and
  # the block are cancelled, and the end of the scope raises the error.
  #
  # {Heddle.scope} opens a scope. Every {Task} also has a scope, for the tasks that it starts.
  class Scope
    # @api private
    # @param frame [Concurrency::ScopeFrame]
    def initialize(frame)
      @frame = frame
    end

    # @return [Task, nil] the task that has opened the scope; nil for the loop's scope of tasks that were started
    #   outside of all tasks
    def task = @frame.task.handle

    # Starts a task in this scope. The task begins in a later tick of the loop, and ends before the scope ends.
    #
    # @param name [String, nil] the task's name in the task tree; default: file and line of its block
    # @param background [Boolean] true: the scope does not wait for the task, and cancels it when only background tasks
    #   are left
    # @param inherit [Boolean, Symbol, Array<Symbol>, nil] the state of the calling code that the task gets as a copy:
    #   `:tags` (of Rails' loggers), `:current` (ActiveSupport::CurrentAttributes), `:trace` (OpenTelemetry's context);
    #   true: all of them
    # @return [Task]
    # @raise [ScopeEndedError] when the scope has ended
    def async(name: nil, background: false, inherit: nil, &block)
      @frame.async(name:, background:, inherit:, &block).handle
    end

    # Cancels the scope or task and everything inside it. Returns at once; the cancelled tasks clean up afterwards.
    #
    # @return [Boolean] false: it was already cancelled, or has ended
    # @raise [ThreadError] when called from a thread other than the loop's
    def cancel = @frame.cancel

    # @return [Boolean] whether this scope or task, or a scope or task around it, was cancelled
    def cancelled? = @frame.cancelled?

    # @return [Boolean] whether the scope and all its tasks have ended
    def ended? = @frame.ended?

    # @return [Array<Task>] the tasks of this scope that have not ended
    def children = @frame.own_children.map(&:handle)

    def to_s = @frame.to_s

    def inspect = "#<#{self.class} #{self}>"
  end
end
