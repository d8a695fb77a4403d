# frozen_string_literal: true

require "heddle/own_code"

module Heddle
  class Scheduler
    # Prevents signals that Ruby raises as exceptions, such as Ctrl-C, from interrupting Heddle's own code. If a signal
    # interrupted the end of a task, for example, the task's scope would wait forever.
    #
    # The guard works while a loop runs on the main thread. If a signal arrives in the program's code, it is raised
    # there, as without Heddle. If it arrives in Heddle's code, it is raised soon afterwards, in a new fiber. If a
    # second signal arrives before then, it is raised at once. Signals that the program handles are left to it.
    #
    # @api private
    class SignalGuard
      # The signals by which users and supervisors end a program, and which by default raise an exception in the main
      # thread.
      NAMES = %w[INT TERM HUP].freeze
      private_constant :NAMES

      # @param scheduler [Scheduler] the block runs the loop of this scheduler
      # @return what the block returns
      def self.during(scheduler, &)
        return yield unless Thread.current.equal?(Thread.main) && Ractor.current.equal?(Ractor.main)

        new(scheduler).during(&)
      end

      # @param handler [Object] the result of `trap`
      # @return [Boolean] whether it is the handler of a guard, which replaces the default handler
      def self.stands_in?(handler) = handler.is_a?(Proc) && handler.source_location&.first == __FILE__

      def initialize(scheduler)
        @scheduler = scheduler
        @fiber = Fiber.current
        @deferred = nil
      end

      def during
        handlers = install
        yield
      ensure
        handlers&.each { |name, handler| restore(name, handler) }
      end

      # Raises the signal, which ends the loop. Called in a new fiber, in a later tick.
      #
      # @api private
      def call
        signal, @deferred = @deferred, nil
        raise signal
      end

      # Does nothing, so that the fiber still raises the signal when the loop cancels all fibers.
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

      # Restores the default handler, unless the program has set its own meanwhile.
      def restore(name, handler)
        now = trap(name, "DEFAULT")
        trap(name, now) unless now.equal?(handler)
      end

      def heed(number)
        signal = exception(number)
        at_once = @deferred || !Native.own_code? || @scheduler.closed?
        signal.set_backtrace(own_lines_off(at_once ? caller : @fiber.backtrace))
        raise signal if at_once

        @deferred = signal
        @scheduler.spawn(self)
      end

      # Drops Heddle's own lines, so that the backtrace begins at the program's line that was interrupted or runs the
      # loop.
      def own_lines_off(lines) = lines.drop_while { |line| line.start_with?(File.dirname(__dir__)) }

      def exception(number)
        name = Signal.signame(number)
        name == "INT" ? Interrupt.new("") : SignalException.new("SIG#{name}")
      end
    end
  end
end
