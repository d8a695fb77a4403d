# frozen_string_literal: true

require "heddle/concurrency"

module Heddle
  module Concurrency
    # A fiber that is listed somewhere while it waits.
    class Parked
      # @param what [String] what needs a loop, for the error outside of one
      def initialize(what)
        @scheduler = Concurrency.scheduler!(what)
        @fiber = Fiber.current
      end

      # Waits until something has happened to it, or the time is over. The caller that listed it takes it off the lists.
      #
      # @param timeout [Numeric, nil] seconds
      def wait(timeout = nil)
        Concurrency.park_while(@scheduler, timeout) { waiting? }
      end

      private

      def wake
        @scheduler.unpark(@fiber)
      end
    end
  end
end
