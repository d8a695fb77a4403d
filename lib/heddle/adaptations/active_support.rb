# frozen_string_literal: true

module Heddle
  module Adaptations
    # Rails keeps state by `Fiber.current`, and an Enumerator's `next` runs its block in another fiber. There a request
    # would have no state and no transaction, and another database connection, which the fiber would keep. So in a loop
    # {RequestFiber} gives Rails the fiber of the request or the task.
    module ActiveSupport
      # A fiber local of the request in an action of ActionController::Live: the fiber that has the request's state.
      # Rails copies fiber locals to the thread of the action.
      LIVE = :heddle_live_state
      private_constant :LIVE

      # Prepended to ActionController::Live. Rails copies the state of the thread that has called the action, and there
      # the state is the fiber's.
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

      # Does nothing where the state is isolated by thread.
      # @return [void]
      def self.install
        state = ::ActiveSupport::IsolatedExecutionState
        state.instance_variable_set(:@scope, RequestFiber) if state.scope.equal?(Fiber)
      end

      # The same for actions of ActionController::Live, also where requests are threads. Idempotent.
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
