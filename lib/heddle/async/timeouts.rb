# frozen_string_literal: true

module Heddle
  module Async
    # Implements `Async::Task#with_timeout` in Heddle's loop.
    module Timeouts
      # Runs the block with a time limit. When the limit has passed, raises the exception at the block's current or next
      # wait.
      #
      # @param seconds [Numeric]
      # @param exception [Class, Exception]
      # @yield [timeout] an Async::Timeout, by which the block can change its deadline
      def with_timeout(seconds, exception = ::Async::TimeoutError, message = "execution expired", &block)
        return adjustable_timeout(seconds, exception, message, &block) unless block.arity.zero?

        timeout_after([seconds, 0].max, exception, message) { |_| block.call }
      end

      private

      def adjustable_timeout(seconds, exception, message)
        fiber = current_fiber
        error = exception.exception(message) # now, because it may raise
        timers = Timers.new(Concurrency::Context.of(self).alarms)
        timeout = ::Async::Timeout.new(timers, timers.schedule(timers.now + seconds, -> { interrupt(fiber, error) }))
        yield timeout
      ensure
        timeout&.cancel!
        take_back(fiber, error) if error
      end

      # Withdraws an error that is still pending because the block has ended without another wait. The error must not be
      # raised outside of the block.
      def take_back(fiber, error)
        pending = uninterrupt(fiber) or return
        interrupt(fiber, pending) unless pending.equal?(error)
      end

      # The timers object that `Async::Timeout` requires.
      class Timers
        def initialize(alarms)
          @alarms = alarms
        end

        def now = Concurrency.now

        # @param time [Float] in seconds of {#now}
        # @return [Handle]
        def schedule(time, block) = Handle.new(@alarms, time, time - now, block)
      end

      # A timer that {Timers#schedule} has started.
      class Handle
        attr_reader :time, :block

        def initialize(alarms, time, seconds, block)
          @alarms = alarms
          @time = time
          @block = block
          @alarm = alarms.add([seconds, 0].max, block, :call)
        end

        def cancel!
          @block = nil
          @alarms.remove(@alarm)
        end

        def cancelled? = @block.nil?
      end
      private_constant :Timers, :Handle
    end
  end
end
