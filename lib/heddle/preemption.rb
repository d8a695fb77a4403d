# frozen_string_literal: true

require "heddle/protection"
require "heddle/preemption/signal_handlers"
require "heddle/watch_thread"

module Heddle
  # The protection preempt: a fiber that computes in Ruby for longer than its time slice is interrupted, so that the
  # other fibers of its event loop run. `Heddle.enable :preempt` switches it on. docs/stalls.md explains what this means
  # for an application's code.
  #
  # @api private
  module Preemption
    # The time slice: seconds for which a fiber may compute while other fibers are ready.
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

      # @return [Hash{Symbol => Object}] `slice`: the time slice in seconds, or nil if preemption is off
      def status = { slice: WatchThread.slice }

      # @api private
      # Must be called before the application is loaded if preemption will be enabled later: see {SignalHandlers}.
      def prepare = SignalHandlers.install

      # @api private
      # Called from C in a fiber that continues: an exception for it arrived while it was preempted. The exception is a
      # pending interrupt of the thread, because Thread.handle_interrupt delays it. Raises the exception here, so that
      # no other fiber of the thread raises it.
      def raise_delivered(exception)
        return unless Thread.pending_interrupt?(exception.class)

        Thread.handle_interrupt(Exception => :immediate) { Thread.pass }
      end
    end
    Protection.register(:preempt, self)
  end
end
