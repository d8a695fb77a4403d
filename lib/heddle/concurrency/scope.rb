# frozen_string_literal: true

module Heddle
  # A block of code that doesn't end before the tasks that were started in it. The first task that fails cancels the
  # others and the block, and its error is raised where the scope ends.
  #
  # {Heddle.scope} makes one; every {Task} also has one, for the tasks that it starts.
  class Scope
    # @api private
    # @param frame [Concurrency::ScopeFrame]
    def initialize(frame)
      @frame = frame
    end

    # @return [Task, nil] the task whose code this is; nil: the scope belongs to the loop, for tasks that were started
    #   outside of all tasks
    def task = @frame.task.handle

    # Starts a task that ends before this scope does. It begins in a later tick of the loop, not at once.
    #
    # @param name [String, nil] its name in the task tree; default: file and line of its block
    # @param background [Boolean] true: the scope doesn't wait for it, and cancels it when all others have ended
    # @param inherit [Boolean, Symbol, Array<Symbol>, nil] the state that it gets from the calling code, as copies:
    #   `:tags` of Rails' loggers, `:current` (ActiveSupport::CurrentAttributes), `:trace` (OpenTelemetry's context);
    #   true: all of them
    # @return [Task]
    # @raise [ScopeEndedError] when the scope has ended
    def async(name: nil, background: false, inherit: nil, &block)
      @frame.async(name:, background:, inherit:, &block).handle
    end

    # Cancels this and everything inside it. Returns at once; the cancelled tasks clean up afterwards.
    #
    # @return [Boolean] false when it was cancelled before or has ended
    # @raise [ThreadError] when called from another thread than the loop's
    def cancel = @frame.cancel

    # @return [Boolean] has this scope, or a frame around it, been cancelled?
    def cancelled? = @frame.cancelled?

    # @return [Boolean] has the scope ended, with all its tasks?
    def ended? = @frame.ended?

    # @return [Array<Task>] the tasks of this scope that have not ended
    def children = @frame.own_children.map(&:handle)

    def to_s = @frame.to_s

    def inspect = "#<#{self.class} #{self}>"
  end
end
