# frozen_string_literal: true

require "heddle/protection"
require "heddle/watch_thread"

module Heddle
  # When native code that keeps Ruby's lock blocks a server's loop, nothing can interrupt it. Then a native thread hands
  # off connections on which a request arrives, with the bytes that were already read, to another worker. Requests that
  # are being served stay where they are.
  #
  # Only the workers of a {Server} can hand connections off; elsewhere it does nothing.
  #
  # @api private
  module Handoff
    # Seconds that a loop may be blocked before its connections are handed off; noticing it takes another 5 to 10 ms.
    AFTER = 0.015

    @workers = 1

    class << self
      # The wanted number of workers, this one included. Set by the server.
      # @return [Integer]
      attr_accessor :workers

      # @param after [Float] seconds
      # @raise [SystemCallError] when no thread can be started
      # @return [void]
      def enable(after: AFTER)
        WatchThread.handoff = after
      end

      # @return [void]
      def disable
        WatchThread.handoff = nil
      end

      # @return [Boolean]
      def enabled? = !WatchThread.handoff.nil?

      # @return [Hash] `after`: the argument of {enable}; `reason`: why nothing can be handed off now, or nil
      def status = { after: WatchThread.handoff, reason: (reason if enabled?) }

      private

      def reason
        "needs a second worker" if workers < 2 || Native.handoff_loops.zero?
      end
    end
    Protection.register(:handoff, self)
  end
end
