# frozen_string_literal: true

require "heddle/protection"
require "heddle/preemption/signal_handlers"
require "heddle/watch_thread"

module Heddle
  # A fiber that computes in Ruby for longer than its slice gives way to the others of its loop.
  # `Heddle.enable :preempt` switches it on. docs/stalls.md says what code may rely on then.
  #
  # @api private
  module Preemption
    # Seconds that a fiber may compute while others wait.
    SLICE = 0.01

    class << self
      # @param slice [Numeric] seconds
      # @return [void]
      def enable(slice: SLICE)
        WatchThread.slice = slice
        prepare
      end

      # @return [void]
      def disable
        WatchThread.slice = nil
      end

      # @return [Boolean]
      def enabled? = !WatchThread.slice.nil?

      # @return [Hash{Symbol => Object}] `slice` in seconds, nil while it is off
      def status = { slice: WatchThread.slice }

      # @api private
      # Called before an application is loaded for which preemption will be enabled: see {SignalHandlers}.
      def prepare = SignalHandlers.install

      # @api private
      # Called from C, in a fiber that waits and has a pending exception, which Thread.handle_interrupt delays: raises
      # it here, so that it is not raised in another fiber of the thread.
      def raise_delivered(exception)
        return unless Thread.pending_interrupt?(exception.class)

        Thread.handle_interrupt(Exception => :immediate) { Thread.pass }
      end
    end
    Protection.register(:preempt, self)
  end
end
