# frozen_string_literal: true

module Heddle
  module Adaptations
    # Rails keeps state by `Fiber.current`, and an Enumerator's `next` runs its block in a fiber of its own: there a
    # request would have no state, another database connection and no transaction, and a connection that the block has
    # leased would stay with that fiber. In a loop the fiber that counts is the one that runs the request or the task,
    # as a thread is where Rails isolates by threads.
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
