# frozen_string_literal: true

require "heddle/scheduler"

module Heddle
  module Preemption
    # @api private
    # Prevents the preemption of signal handlers: their authors expect that nothing else in the thread runs before the
    # handler has ended. Ruby does not report whether a handler runs. So after {SignalHandlers.install}, `trap` wraps
    # each handler in an object that prevents preemption while it calls the handler. `trap` still returns the original
    # handler.
    module SignalHandlers
      # The object that Ruby calls instead of the handler.
      class Handler
        # @return [#call] the original handler
        attr_reader :given

        def initialize(given)
          @given = given
        end

        # Calls the handler without preemption. The scheduler's method for this is in C. Heddle.without_preemption would
        # add a frame of Ruby code, so that Ctrl-C would always seem to interrupt Heddle's own code ({OwnCode}).
        #
        # @param number [Integer] the signal's number
        def call(number)
          scheduler = Fiber.scheduler
          return @given.call(number) unless scheduler.is_a?(Scheduler)

          scheduler.without_preemption { @given.call(number) }
        end
      end
      private_constant :Handler

      # Prepended to the singleton classes of Signal and Kernel.
      module Setting
        def trap(*arguments, &block)
          arguments << block if arguments.size == 1 && block
          arguments[1] = SignalHandlers.wrapped(arguments[1]) if arguments.size == 2
          SignalHandlers.given(super)
        end
      end
      private_constant :Setting

      # Prepended to Kernel itself, where `trap` is private. This module has a name, because it appears in the ancestors
      # of every object's class.
      PrivateSetting = Setting.clone
      PrivateSetting.send(:private, :trap)
      private_constant :PrivateSetting

      class << self
        # Installs the modules, once for each process. They are never removed: while preemption is off, a {Handler} only
        # calls the original handler.
        # @return [void]
        def install
          return if @installed

          @installed = true
          ::Kernel.prepend(PrivateSetting)
          [::Kernel, ::Signal].each { |set| set.singleton_class.prepend(Setting) }
        end

        # Wraps a handler. Commands such as "IGNORE" and code in a String are not changed.
        def wrapped(handler) = handler.respond_to?(:call) && !handler.is_a?(Handler) ? Handler.new(handler) : handler

        def given(handler) = handler.is_a?(Handler) ? handler.given : handler
      end
    end
  end
end
