# frozen_string_literal: true

require "heddle/concurrency/frame"
require "heddle/concurrency/scope"

module Heddle
  module Concurrency
    # The implementation of {Heddle::Scope}.
    #
    # @api private
    class ScopeFrame < Frame
      # @return [TaskFrame] the task that has opened the scope
      attr_reader :task

      def initialize(task, grace = nil)
        super()
        @task = task
        @outer = task.innermost
        @grace = Arguments.limit("cancel_grace:", grace)
      end

      # @return [Scope] the public object
      def scope = @scope ||= Scope.new(self)

      # (see Scope#async)
      # @return [TaskFrame]
      def async(name: nil, background: false, inherit: nil, &block)
        raise ArgumentError, "Heddle.async needs a block to run in the task" unless block

        if inherit
          name ||= Concurrency.place(block)
          block = Inheritance.wrap(inherit, block)
        end
        begin_task(TaskFrame.new(self, task.scheduler, name, block), background)
      end

      # @param child [TaskFrame] a task made for this scope; this method starts it
      # @return [TaskFrame]
      def begin_task(child, background)
        raise ScopeEndedError, "#{self} has ended, so no task can be started in it" if ended?

        child.mark_cancelled(child) if @origin
        child.start # before the child is added, because it may raise
        adopt(child, background)
        child
      end

      # @param child [TaskFrame] a task that has started, or starts directly after this call
      # @param background [Boolean] whether the scope does not wait for it
      def adopt(child, background)
        (@children ||= {}.compare_by_identity)[child] = background
        @foreground = (@foreground || 0) + 1 unless background
      end

      # @param child [TaskFrame] a task that was adopted, and then could not be started
      def disown(child)
        return unless @children.key?(child)

        @foreground -= 1 unless @children.delete(child)
      end

      # @return [Array<TaskFrame>] the tasks of this scope that have not ended
      def own_children = @children ? @children.keys : []
      alias children own_children

      # @return [Boolean] whether the scope and all its tasks have ended
      def ended? = @over == :ended

      # Runs the block in this scope, and waits for the tasks.
      #
      # @return what the block returns
      def run
        open
        begin
          yield scope
        rescue Exception => e # `finish` raises it again
          @over = true
          absorb(e)
          nil
        ensure
          finish
        end
      end

      # Opens the scope: until {close}, tasks that the current task starts belong to it.
      #
      # @return [self]
      def open
        task.innermost = self
        self
      end

      # Closes the scope: waits for its tasks, and raises the first failure.
      #
      # @param error [Exception, nil] the exception that was raised between {open} and this call
      def close(error)
        if error
          @over = true
          absorb(error)
        end
        finish
      end

      # A child calls this method at its end.
      def child_ended(child)
        background = @children.delete(child)
        @foreground -= 1 unless background
        failed(child.failure) if child.failed? && !forgiven?(child)
        return unless @joiner && (@foreground.nil? || @foreground.zero?)

        task.scheduler.unpark(@joiner)
      end

      def background_child?(child) = @children&.[](child) || false

      def to_s = "the scope of #{task}"

      protected

      def mark_cancelled(origin)
        super
        @surfaced = true if @over && origin.equal?(self)
        cancel_children
      end

      private

      # Handles an error that the block has raised, or that was raised while the scope waited for its tasks.
      def absorb(error)
        if !error.is_a?(Cancelled)
          failed(error)
        elsif @origin.equal?(self)
          @surfaced = true
        else
          @passing = error
          cancel_children
        end
      end

      def failed(error)
        Context.of(task.scheduler).raise_in_loop(error) if error.is_a?(SignalException)
        # raised by Timeout.timeout, whose block may contain the whole loop, and not only code of this task
        timeout = defined?(Timeout::ExitException) && error.is_a?(Timeout::ExitException)
        task.scheduler.cancel_computing(error) if timeout
        (@failures ||= []) << error unless @failures&.any? { |other| other.equal?(error) }
        cancel
      end

      # {Supervisor} overrides this method, because a supervisor ignores most failures of children.
      def forgiven?(_child) = false

      def cancel_children
        @children&.each_key(&:cancel)
      end

      def finish
        @over ||= true
        join if @children
      ensure
        leave(@surfaced)
        raise_outcome
      end

      # Waits for all children. When only background tasks are left, cancels them. An exception during the wait cancels
      # all children, but the wait continues, because they need time to clean up. A killed thread, whose status is
      # "aborting", leaves the scope's block without an exception, so {absorb} has not cancelled the children.
      def join
        cancel if Thread.current.status == "aborting"
        @joiner = Fiber.current
        until @children.empty?
          cancel_children if @foreground.nil? || @foreground.zero?
          begin
            Concurrency.unless_killed(method(:cancel)) { task.scheduler.park }
          rescue Exception => e
            absorb(e)
          end
        end
      ensure
        join_killed unless @children.empty?
      end

      # Called if Fiber#kill ends the fiber. Then no wait returns, but the next ensure clause runs, and can wait, too.
      def join_killed
        cancel
        task.scheduler.park
      ensure
        join_killed unless @children.empty?
      end

      def raise_outcome
        raise_failure if @failures
        raise @passing, cause: @passing.cause if @passing
      end

      def raise_failure
        error = failure
        raise error, cause: error.cause
      end

      # The first failure, with the later ones attached.
      def failure
        Concurrency.attach_failures(@failures.first, @failures.drop(1)) if @failures.size > 1
        @failures.first
      end

      def cancel_message = "cancelled: #{@failures ? "a task of this scope failed" : self}"
    end
  end
end
