# frozen_string_literal: true

module Heddle
  module Concurrency
    # Runs blocks of other threads in a loop.
    class ThreadCalls
      # Maximum number of waiting blocks. At the limit, other threads wait before they add a block.
      LIMIT = 1_000
      private_constant :LIMIT

      # Must be called in the loop.
      # @param root [Task] the loop's root task
      def initialize(root)
        @calls = Thread::SizedQueue.new(LIMIT)
        @thread = Thread.current
        root.async(name: "calls of other threads", background: true) { run }
      end

      # @return [Boolean] whether the caller is in another thread than the loop, and so must use {push} or {ask}
      def needed? = !Thread.current.equal?(@thread)

      # Makes the loop call the block, which must not wait. The loop calls blocks in the order in which they were added.
      # @return [Object, nil] nil: the loop has ended
      def push(&call)
        @calls << call
      rescue ClosedQueueError
        nil
      end

      # Runs the block in a fiber of the loop, and waits for it.
      # @return what the block returns
      # @raise what the block raises
      # @raise [IOError] if the loop has ended
      def ask(&work)
        answer = Promise.new
        push { Fiber.schedule { answer.fulfil(&work) } } or raise IOError, "the event loop has ended"
        answer.value
      end

      private

      def run
        while (call = @calls.pop)
          call.call
        end
      ensure
        @calls.close
      end
    end
  end
end
