# frozen_string_literal: true

require "heddle/enable"
require "heddle/watch"

module Heddle
  # When a server's loop is blocked by something that nothing can interrupt (native code that keeps Ruby's lock), its
  # other clients go to another worker: a native thread gives that one the connections on which a request arrives, with
  # what was read of them. Requests that are being served stay where they are.
  #
  # Only the workers of a {Server} have others to give to; elsewhere it does nothing.
  #
  # @api private
  module Handoff
    # Seconds that a loop may be blocked before; another 5 to 10 ms go by until it is noticed and done.
    AFTER = 0.015

    @workers = 1

    class << self
      # How many workers there are to be, this one too. The server says so.
      # @return [Integer]
      attr_accessor :workers

      # @param after [Float] seconds
      # @raise [SystemCallError] when there is no thread to be had
      # @return [void]
      def enable(after: AFTER)
        Watch.handoff = after
      end

      # @return [void]
      def disable
        Watch.handoff = nil
      end

      # @return [Boolean]
      def enabled? = !Watch.handoff.nil?

      # @return [Hash] `after`: {enable}'s; `reason`: why nothing is handed off now, if so
      def status = { after: Watch.handoff, reason: (reason if enabled?) }

      private

      def reason
        "needs a second worker" if workers < 2 || Native.handoff_loops.zero?
      end
    end
    Protection.register(:handoff, self)
  end
end
