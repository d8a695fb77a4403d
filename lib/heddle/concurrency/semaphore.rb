# frozen_string_literal: true

require "heddle/concurrency/timeout_error"
require "heddle/concurrency/wait_list"

module Heddle
  # Limits how many tasks of one loop run a piece of code at the same time. Tasks acquire the semaphore in the order of
  # their calls.
  #
  #     limit = Heddle::Semaphore.new(10)
  #     limit.acquire { Net::HTTP.get(uri) }
  class Semaphore
    # @return [Integer] maximum number of tasks that may have acquired it at the same time
    attr_reader :limit

    def initialize(limit)
      @limit = Arguments.count("the limit", limit, 1)
      @free = limit
      @waiting = Concurrency::WaitList.new("Heddle::Semaphore#acquire")
    end

    # @return [Integer] number of tasks that could acquire it without waiting
    attr_reader :free

    # @return [Integer] number of waiting tasks
    def waiting = @waiting.size

    # Acquires the semaphore. Waits while the limit is reached. With a block, calls the block and then releases the
    # semaphore.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    # @return [true, Object] the block's value; true without a block
    # @raise [TimeoutError]
    def acquire(timeout: nil)
      if @free.positive? # no fiber waits, because `release` serves waiting fibers first
        @free -= 1
      elsif !@waiting.wait(timeout) { release }
        raise TimeoutError, "none of the semaphore's #{@limit} permits became free within #{timeout} s"
      end
      return true unless block_given?

      begin
        yield
      ensure
        release
      end
    end

    # @return [Boolean] whether the semaphore was acquired; the method never waits
    def try_acquire
      return false unless @free.positive?

      @free -= 1
      true
    end

    # Releases the semaphore. The task that has waited longest acquires it.
    #
    # @raise [ThreadError] if it was not acquired
    def release
      raise ThreadError, "the semaphore was released more often than acquired" if @free >= @limit

      @free += 1 unless @waiting.wake
      nil
    end
  end
end
