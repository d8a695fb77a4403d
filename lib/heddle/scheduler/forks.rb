# frozen_string_literal: true

module Heddle
  class Scheduler
    # Keeps the loop in a child that a fiber has forked. In such a child, Ruby 4.0 removes the scheduler, and turns the
    # fiber into a blocking one, in which Ruby calls no scheduler hook. {Patches} prepends this module to Process's
    # singleton class.
    #
    # @api private
    module Forks
      # @see Process._fork
      def _fork = Forks.keep_loop { super }

      # Needed because Process.daemon forks without a call of +_fork+.
      #
      # @see Process.daemon
      def daemon(...) = Forks.keep_loop { super }

      # Makes the fiber blocking before the fork, because Ruby makes it blocking in the child. At its end,
      # Fiber.blocking then makes the fiber non-blocking in both processes.
      def self.keep_loop(&)
        scheduler = Fiber.scheduler
        return yield unless scheduler.is_a?(Scheduler)

        Fiber.blocking(&).tap { restore(scheduler) unless Fiber.scheduler }
      end

      def self.restore(scheduler)
        Fiber.set_scheduler(scheduler)
        scheduler.process_fork if scheduler.respond_to?(:process_fork) # of async, which calls it only before Ruby 4.0
      end
      private_class_method :restore
    end
  end
end
