# frozen_string_literal: true

module Heddle
  module Concurrency
    # The result of {Timers#every} and {Timers#after}.
    class Timer
      # @return [#post, nil] nil: it is stopped
      attr_reader :receiver

      # @return [Proc, nil]
      attr_reader :block

      # @return [Numeric, nil] seconds; nil: it rings once
      attr_reader :interval

      # @return [Alarm] the next one, set by {Timers}
      attr_accessor :alarm

      # @param timers [Timers]
      def initialize(timers, interval, receiver, block)
        @timers = timers
        @interval = interval
        @receiver = receiver
        @block = block
        @pending = false
      end

      # Called by the receiver.
      def call
        @pending = false
        @block&.call
      end

      # Called by the heap of alarms.
      def ring
        unless @pending
          @pending = true
          @receiver.post(self)
        end
        @timers.renew(self) if @interval && @receiver
      end

      # From here on it holds no reference to its receiver.
      # @return [void]
      def stop
        @receiver = @block = nil
        @timers.forget(self)
      end
    end
  end
end
