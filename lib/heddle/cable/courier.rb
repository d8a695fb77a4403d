# frozen_string_literal: true

module Heddle
  module Cable
    # Brings calls that other threads make, such as those of an adapter, into the loop of their sockets. In order.
    class Courier
      # In the loop.
      def initialize
        @calls = Thread::Queue.new
        @thread = Thread.current
        root = Concurrency::Context.of(Fiber.current_scheduler).root
        root.async(name: "cable courier", background: true) { deliver }
      end

      # @return [Boolean] whether this thread is another one than the loop's
      def needed? = !Thread.current.equal?(@thread)

      # Has {Socket#perform_work} called in the loop.
      # @param socket [Socket]
      # @return [void]
      def bring(socket, *call) = @calls << [socket, call]

      private

      def deliver
        while (socket, call = @calls.pop)
          socket.perform_work(*call)
        end
      end
    end
  end
end
