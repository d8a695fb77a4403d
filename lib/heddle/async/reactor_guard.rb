# frozen_string_literal: true

module Heddle
  # See heddle/async.rb.
  module Async
    # @api private
    # Must be called before a reactor is made. In a thread with Heddle's loop, the reactor would replace Heddle's
    # scheduler, and would never run.
    #
    # @raise [ThreadError] if the thread already has a loop of Heddle
    def self.refuse_reactor
      return unless Fiber.scheduler.is_a?(Scheduler)

      raise ThreadError, "this thread already has a Heddle loop: start tasks in the loop with Async { ... }, or " \
                         "create the reactor in another thread"
    end

    # Prepended to Async::Reactor.
    module ReactorGuard
      def initialize(...)
        Async.refuse_reactor
        super
      end
    end
  end
end
