# frozen_string_literal: true

module Heddle
  module Cable
    # Passes calls of other threads, such as an adapter's thread, to the sockets of one loop. The loop runs them in
    # their order.
    class ThreadCalls
      # Maximum number of waiting calls. At the limit, other threads wait before they add a call.
      LIMIT = 1_000
      private_constant :LIMIT

      # Must be called in the loop.
      def initialize
        @calls = Thread::SizedQueue.new(LIMIT)
        @thread = Thread.current
        root = Concurrency::Context.of(Fiber.current_scheduler).root
        root.async(name: "cable thread calls", background: true) { run }
      end

      # @return [Boolean] whether the calling thread is not the loop's
      def needed? = !Thread.current.equal?(@thread)

      # Makes the loop call {Socket#perform_work}.
      # @param socket [Socket]
      # @return [void]
      def push(socket, *call)
        @calls << [socket, call]
      rescue ClosedQueueError
        nil # the loop has ended, and its sockets with it
      end

      private

      def run
        while (socket, call = @calls.pop)
          socket.perform_work(*call)
        end
      ensure
        @calls.close
      end
    end
  end
end
