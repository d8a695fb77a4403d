# frozen_string_literal: true

require "heddle/concurrency/timeout_error"
require "heddle/concurrency/wait_list"

module Heddle
  # Limits how many tasks of one loop run a piece of code at the same time, first come first served.
  #
  #     limit = Heddle::Semaphore.new(10)
  #     limit.acquire { Net::HTTP.get(uri) }
  class Semaphore
    # @return [Integer] how many may hold it at once
    attr_reader :limit

    def initialize(limit)
      unless limit.is_a?(Integer) && limit >= 1
        raise ArgumentError, "the limit is #{limit.inspect}, but must be 1 or more"
      end

      @limit = limit
      @free = limit
      @waiting = Concurrency::WaitList.new
    end

    # @return [Integer] how many could acquire it without waiting
    attr_reader :free

    # @return [Integer] how many tasks wait for it
    def waiting = @waiting.size

    # Acquires the semaphore, and waits while as many tasks as the limit hold it. With a block: calls it, releases the
    # semaphore, and returns what the block returned.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [true, Object] without a block true; with a block its value
    # @raise [TimeoutError]
    def acquire(timeout: nil)
      if @free.positive? # then no fiber waits: release serves waiting fibers first
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

    # @return [Boolean] was it acquired, without waiting?
    def try_acquire
      return false unless @free.positive?

      @free -= 1
      true
    end

    # Releases it, to the task that has waited longest if there is one.
    #
    # @raise [ThreadError] when it was not acquired
    def release
      raise ThreadError, "a semaphore was released more often than acquired" if @free >= @limit

      @free += 1 unless @waiting.wake
      nil
    end
  end
end
