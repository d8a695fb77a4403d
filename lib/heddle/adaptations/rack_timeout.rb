# frozen_string_literal: true

module Heddle
  module Adaptations
    # Rack::Timeout has a thread that raises exceptions in the thread of a request. In a loop, this module replaces the
    # gem's time limits by timers of the loop. They raise the exceptions in the request's fiber: at a wait, and with
    # preemption also while the fiber computes. States, observers and `term_on_timeout` are still the gem's own code.
    module RackTimeout
      # Included in the exception that the timer of a limit raises. The exception passes itself to the gem's block in
      # place of the request's thread. The block calls {#raise} with the gem's exception, which is then raised instead.
      module Expiry
        # @param action [#call] the gem's block, which gets the thread to raise in
        def initialize(action)
          super(nil)
          @heddle_action = action
        end

        # @see Exception#exception
        def exception(*)
          @heddle_raised ||= begin
            @heddle_action.call(self)
            @heddle_raised || RuntimeError.new("a time limit of Rack::Timeout has passed")
          end
        end

        # @see Thread#raise
        def raise(error, *message) = @heddle_raised = error.exception(*message)
      end

      # Prepended to Rack::Timeout::Scheduler::Timeout.
      module Limit
        # @see Rack::Timeout::Scheduler::Timeout#timeout
        def timeout(seconds, &block)
          scheduler = Fiber.current_scheduler
          return super if !scheduler.is_a?(Scheduler) || seconds.nil? || seconds.zero?

          scheduler.timeout_after(seconds, RackTimeout.expiry.new(@on_timeout)) { block.call }
        end
      end

      # Prepended to the singleton class of Rack::Timeout::Scheduler.
      module Repeated
        # @see Rack::Timeout::Scheduler.run_every
        def run_every(seconds, &block)
          scheduler = Fiber.current_scheduler
          return super unless scheduler.is_a?(Scheduler) && Concurrency::Context.of(scheduler).root

          block.call
          Repetition.new(scheduler, seconds, block)
        end
      end

      # Calls a block at an interval of `seconds`, each time in a new task, which may wait.
      class Repetition
        def initialize(scheduler, seconds, block)
          @context = Concurrency::Context.of(scheduler)
          @timer = @context.timers.every(seconds, self, &block)
        end

        # @see Concurrency::Timers#every
        def post(timer)
          @context.root.async(name: "rack-timeout", background: true) { timer.call }
        end

        # @see Rack::Timeout::Scheduler::RunEvent#cancel!
        def cancel! = @timer.stop
      end
      private_constant :Expiry, :Limit, :Repeated, :Repetition

      class << self
        # @return [Class] a subclass of the gem's exception, so that a Thread.handle_interrupt for the gem's exception
        #   also applies to it
        attr_reader :expiry
      end

      # @return [void]
      def self.install
        @expiry ||= Class.new(::Rack::Timeout::RequestTimeoutException) { include Expiry }
        ::Rack::Timeout::Scheduler::Timeout.prepend(Limit)
        ::Rack::Timeout::Scheduler.singleton_class.prepend(Repeated)
      end
    end
  end
end
