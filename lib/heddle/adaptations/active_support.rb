# frozen_string_literal: true

module Heddle
  module Adaptations
    # With the isolation level :fiber, Rails keeps state per fiber (`Fiber.current`). But `Enumerator#next` runs the
    # enumerator's block in another fiber. There the request would lack its state, and would use another database
    # connection, outside of its transaction. So in a loop, Rails gets the fiber of the request or task from
    # {RequestFiber}.
    module ActiveSupport
      # The fiber-local variable that contains the fiber with the request's state, while ActionController::Live starts
      # an action. Rails copies fiber-local variables to the thread of the action.
      LIVE = :heddle_live_state
      private_constant :LIVE

      # Prepended to ActionController::Live. Rails would copy the state of the calling thread, but the state belongs to
      # the calling fiber.
      module Live
        # @see ActionController::Live#process
        def process(...)
          Thread.current[LIVE] = ::ActiveSupport::IsolatedExecutionState.context
          super
        ensure
          Thread.current[LIVE] = nil
        end
      end

      # Prepended to the singleton class of ActiveSupport::IsolatedExecutionState.
      module Sharing
        # @see ActiveSupport::IsolatedExecutionState.share_with
        def share_with(other, ...) = super(Thread.current[LIVE] || other, ...)
      end
      private_constant :Live, :Sharing

      # Makes Rails ask {RequestFiber} which fiber its state belongs to. Does nothing if Rails isolates state by thread.
      # @return [void]
      def self.install
        state = ::ActiveSupport::IsolatedExecutionState
        state.instance_variable_set(:@scope, RequestFiber) if state.scope.equal?(Fiber)
      end

      # Makes actions of ActionController::Live, which run in their own thread, share the state of the request's fiber,
      # also in mode thread. Does nothing if Rails isolates state by thread. Idempotent.
      # @return [void]
      def self.share_with_live
        state = ::ActiveSupport::IsolatedExecutionState
        return if state.isolation_level != :fiber || state.singleton_class.include?(Sharing)

        state.singleton_class.prepend(Sharing)
        ::ActiveSupport.on_load(:action_controller) { ::ActionController::Live.prepend(Live) }
      end
    end
  end
end
