# frozen_string_literal: true

module Heddle
  module Adaptations
    # Rails keeps state by `Fiber.current`, and an Enumerator's `next` runs its block in another fiber. There a request
    # would have no state and no transaction, and another database connection, which the fiber would keep. So in a loop
    # {RequestFiber} gives Rails the fiber of the request or the task.
    module ActiveSupport
      # Does nothing where the state is isolated by thread.
      # @return [void]
      def self.install
        state = ::ActiveSupport::IsolatedExecutionState
        state.instance_variable_set(:@scope, RequestFiber) if state.scope.equal?(Fiber)
      end
    end
  end
end
