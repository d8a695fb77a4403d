# frozen_string_literal: true

module Heddle
  class Scheduler
    # A child that a fiber forks keeps its loop. Ruby 4.0 takes the scheduler from a forked child, and makes the fiber
    # that forked a blocking one, in which no hook is called. {Patches} prepends this module to Process's singleton
    # class.
    #
    # @api private
    module Forks
      # @see Process._fork
      def _fork = Forks.keep_loop { super }

      # Ruby's daemon(3) doesn't call +_fork+.
      #
      # @see Process.daemon
      def daemon(...) = Forks.keep_loop { super }

      # Makes the fiber blocking before the fork, as Ruby does in the child. So the end of the block makes it
      # non-blocking in both processes.
      def self.keep_loop(&)
        scheduler = Fiber.scheduler
        return yield unless scheduler.is_a?(Scheduler)

        Fiber.blocking(&).tap { restore(scheduler) unless Fiber.scheduler }
      end

      def self.restore(scheduler)
        Fiber.set_scheduler(scheduler)
        scheduler.process_fork if scheduler.respond_to?(:process_fork) # async calls it on Rubies before 4.0
      end
      private_class_method :restore
    end
  end
end
