# frozen_string_literal: true

module Heddle
  module Cable
    # Calls of other threads, such as an adapter's, for the sockets of one loop. They run in the loop, in their order.
    class ThreadCalls
      # In the loop.
      def initialize
        @calls = Thread::Queue.new
        @thread = Thread.current
        root = Concurrency::Context.of(Fiber.current_scheduler).root
        root.async(name: "cable thread calls", background: true) { run }
      end

      # @return [Boolean] whether this thread is another one than the loop's
      def needed? = !Thread.current.equal?(@thread)

      # Has {Socket#perform_work} called in the loop.
      # @param socket [Socket]
      # @return [void]
      def push(socket, *call) = @calls << [socket, call]

      private

      def run
        while (socket, call = @calls.pop)
          socket.perform_work(*call)
        end
      end
    end
  end
end
