# frozen_string_literal: true

require "heddle/scheduler"

module Heddle
  module Preemption
    # @api private
    # A signal's handler must not be preempted: its author expects that nothing else in its thread runs before it has
    # ended. Ruby does not report whether a handler runs. So handlers that are set from now on are called by an object
    # that prevents preemption. `trap` returns the block that was set.
    module SignalHandlers
      # The object that Ruby calls instead of the handler.
      class Handler
        # @return [#call] what was set
        attr_reader :given

        def initialize(given)
          @given = given
        end

        # Calls the scheduler's method, which is in C. With a frame of Heddle.without_preemption, the interrupted code
        # would count as Heddle's own ({OwnCode}), in which Ctrl-C is not raised.
        #
        # @param number [Integer] of the signal
        def call(number)
          scheduler = Fiber.scheduler
          return @given.call(number) unless scheduler.is_a?(Scheduler)

          scheduler.without_preemption { @given.call(number) }
        end
      end
      private_constant :Handler

      # Prepended to the methods that set handlers (Signal.trap).
      module Setting
        def trap(*arguments, &block)
          arguments << block if arguments.size == 1 && block
          arguments[1] = SignalHandlers.wrapped(arguments[1]) if arguments.size == 2
          SignalHandlers.given(super)
        end
      end
      private_constant :Setting

      # The same for Kernel, where the method is private. It has a name, because every object has it as an ancestor.
      PrivateSetting = Setting.clone
      PrivateSetting.send(:private, :trap)
      private_constant :PrivateSetting

      class << self
        # Has an effect once for each process, and is never undone: while preemption is off, a {Handler} only calls what
        # was set.
        # @return [void]
        def install
          return if @installed

          @installed = true
          ::Kernel.prepend(PrivateSetting)
          [::Kernel, ::Signal].each { |set| set.singleton_class.prepend(Setting) }
        end

        # Commands such as "IGNORE", and code in a String, are not changed.
        def wrapped(handler) = handler.respond_to?(:call) && !handler.is_a?(Handler) ? Handler.new(handler) : handler

        def given(handler) = handler.is_a?(Handler) ? handler.given : handler
      end
    end
  end
end
