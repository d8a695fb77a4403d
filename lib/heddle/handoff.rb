# frozen_string_literal: true

require "heddle/protection"
require "heddle/watch_thread"

module Heddle
  # The protection handoff. Nothing can interrupt native code that keeps Ruby's lock, so it blocks the worker's event
  # loop. During such a stall, a native thread hands off each connection on which a request arrives, with the bytes that
  # were already read, to another worker. Running requests stay in the blocked worker.
  #
  # Only the workers of a {Server} can hand off connections; elsewhere the protection has no effect.
  #
  # @api private
  module Handoff
    # Seconds after which the connections of a blocked loop are handed off. The detection takes another 5 to 10 ms.
    AFTER = 0.015

    @workers = 1

    class << self
      # The configured number of workers, including this one and the reserve workers. The server sets it.
      # @return [Integer]
      attr_accessor :workers

      # @param after [Float] seconds
      # @raise [SystemCallError] if the watch thread can't be started
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

      # @return [Hash] `after`: the argument of {enable}; `reason`: why connections can't be handed off, or nil
      def status = { after: WatchThread.handoff, reason: (reason if enabled?) }

      private

      def reason
        return "needs a second worker" if workers < 2

        "no event loop of this process can hand off connections" if Native.handoff_loops.zero?
      end
    end
    Protection.register(:handoff, self)
  end
end
