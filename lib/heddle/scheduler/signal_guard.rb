# frozen_string_literal: true

require "heddle/own_code"

module Heddle
  class Scheduler
    # Keeps Ctrl-C, and the other signals that Ruby makes an exception of, from striking in the middle of Heddle's own
    # code: half of what ends a task, say, would be left undone, and its scope would wait for it forever.
    #
    # While a loop runs on the main thread such a signal is raised where it arrives, as Ruby does it, if that is
    # other code; if it is ours, the loop raises it between two switches. A second signal before the loop comes
    # to that acts at once. A signal that the program handles itself is left alone.
    #
    # @api private
    class SignalGuard
      # The default of each is an exception in the main thread, see Ruby's doc/signals.rdoc.
      NAMES = %w[INT TERM HUP].freeze
      private_constant :NAMES

      # @param scheduler [Scheduler] whose loop runs meanwhile
      # @return what the block returns
      def self.during(scheduler, &)
        return yield unless Thread.current.equal?(Thread.main) && Ractor.current.equal?(Ractor.main)

        new(scheduler).during(&)
      end

      # @param handler [Object] what `trap` has returned
      # @return [Boolean] whether it stands for the default of a signal while a loop runs, and is no one else's handler
      def self.stands_in?(handler) = handler.is_a?(Proc) && handler.source_location&.first == __FILE__

      def initialize(scheduler)
        @scheduler = scheduler
        @deferred = nil
      end

      def during
        handlers = install
        yield
      ensure
        handlers&.each { |name, handler| restore(name, handler) }
      end

      # The fiber that the loop comes to: the loop ends with the exception that it raises.
      #
      # @api private
      def call
        signal, @deferred = @deferred, nil
        raise signal
      end

      # This message distinguishes it from other cancellations.
      #
      # @api private
      def cancel; end

      private

      def install
        NAMES.filter_map do |name|
          handler = ->(number) { heed(number) }
          before = trap(name, handler)
          next [name, handler] if before == "DEFAULT"

          trap(name, before)
          nil
        end
      end

      # Unless the program has put its own handler there meanwhile.
      def restore(name, handler)
        now = trap(name, "DEFAULT")
        trap(name, now) unless now.equal?(handler)
      end

      def heed(number)
        signal = exception(number)
        raise signal if @deferred || !Native.own_code? || @scheduler.closed?

        @deferred = signal
        @scheduler.spawn(self)
      end

      def exception(number)
        name = Signal.signame(number)
        name == "INT" ? Interrupt.new("") : SignalException.new("SIG#{name}")
      end
    end
  end
end
