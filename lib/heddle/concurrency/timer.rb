# frozen_string_literal: true

module Heddle
  module Concurrency
    # The result of {Timers#every} and {Timers#after}.
    class Timer
      # @return [#post, nil] the object that calls the timer; nil: the timer is stopped
      attr_reader :receiver

      # @return [Proc, nil] nil: the timer is stopped
      attr_reader :block

      # @return [Numeric, nil] seconds; nil: the timer runs once
      attr_reader :interval

      # @return [Alarm] the next alarm, set by {Timers}
      attr_accessor :alarm

      # @param timers [Timers]
      def initialize(timers, interval, receiver, block)
        @timers = timers
        @interval = interval
        @receiver = receiver
        @block = block
        @pending = false
      end

      # The receiver calls this method.
      def call
        @pending = false
        @block&.call
      end

      # The heap of alarms calls this method when the timer is due.
      def ring
        unless @pending
          @pending = true
          @receiver.post(self)
        end
        @timers.renew(self) if @interval && @receiver
      end

      # Stops the timer, and removes the timer's references to its receiver and block.
      # @return [void]
      def stop
        @receiver = @block = nil
        @timers.forget(self)
      end
      alias shutdown stop # Action Cable calls it
    end
  end
end
