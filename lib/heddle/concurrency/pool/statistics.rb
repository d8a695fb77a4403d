# frozen_string_literal: true

module Heddle
  class Pool
    # Counters of a pool since it was made.
    #
    # @api private
    class Statistics
      # Why resources were closed. `shared`: another worker needed the share (`max_total`).
      REASONS = %i[idle age broken closed shared].freeze

      # @return [Integer] numbers: of resources that were made, of waits that timed out, of all waits, of
      #   {NestedCheckoutError}s, of reports about resources whose fibers waited for something else
      attr_accessor :created, :timeouts, :waits, :nested, :held_while_waiting

      # @return [Float] seconds: the sum of all waits, and the sum of the times for which resources were in use
      attr_accessor :wait_seconds, :held_seconds

      # @return [Hash{Symbol => Integer}] number of closed resources by reason
      attr_reader :closed

      def initialize
        @created = @timeouts = @waits = @nested = @held_while_waiting = 0
        @wait_seconds = @held_seconds = 0.0
        @closed = REASONS.to_h { |reason| [reason, 0] }
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        { created:, closed: closed.dup, timeouts:, waits:, wait_seconds:, held_seconds:, nested:, held_while_waiting: }
      end
    end
  end
end
