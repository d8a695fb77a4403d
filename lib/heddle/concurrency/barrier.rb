# frozen_string_literal: true

require "heddle/concurrency/timeout_error"
require "heddle/concurrency/wait_list"

module Heddle
  # A point at which a fixed number of tasks of one loop wait for each other. When the last task arrives, all continue,
  # and the barrier can be used again.
  class Barrier
    # @return [Integer] number of tasks that must arrive
    attr_reader :parties

    def initialize(parties)
      @parties = Arguments.count("the number of parties", parties, 1)
      @waiting = Concurrency::WaitList.new("Heddle::Barrier#wait")
      @arrived = []
    end

    # @return [Integer] number of tasks that have arrived and wait
    def waiting = @waiting.size

    # Waits until all tasks have arrived. A task that is cancelled or times out does not count as arrived.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    # @return [Integer] the task's place in the order of arrival: 0 for the task that arrived first, `parties - 1` for
    #   the task that arrived last
    # @raise [TimeoutError]
    def wait(timeout: nil)
      fiber = Fiber.current
      arrived = @arrived << fiber
      if arrived.size == @parties
        @arrived = []
        @waiting.wake_all
      elsif !@waiting.wait(timeout)
        raise TimeoutError, "only #{arrived.size} of #{@parties} tasks reached the barrier within #{timeout} s"
      end
      arrived.index(fiber)
    ensure
      @arrived.delete(fiber)
    end
  end
end
