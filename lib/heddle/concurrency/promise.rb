# frozen_string_literal: true

require "heddle/concurrency/timeout_error"

module Heddle
  # A value that will be known later. Any thread may settle it, once, and any number of tasks and threads may wait for
  # it, with or without a loop.
  #
  #     answer = Heddle::Promise.new
  #     Thread.new { answer.resolve(compute) }
  #     answer.value
  class Promise
    # Raised when a promise is settled a second time.
    class AlreadySettledError < ThreadError
      include Heddle::Error
    end

    def initialize
      @lock = Thread::Mutex.new
      @settled = Thread::Queue.new # never holds anything: closing it wakes all that wait, in any thread
      @value = @error = nil
    end

    # @return [self]
    # @raise [AlreadySettledError]
    def resolve(value = nil)
      settle { @value = value }
    end

    # @param error [Exception, Class, String] as for `raise`; it is raised in every caller of {#value}
    # @return [self]
    # @raise [AlreadySettledError]
    def reject(error)
      error = RuntimeError.new(error) if error.is_a?(String)
      error = error.exception
      settle { @error = error }
    end

    # Settles it with what the block returns, or with the StandardError that it raises.
    #
    # @return [self]
    def fulfil
      value = yield
    rescue StandardError => e
      reject(e)
    else
      resolve(value)
    end

    # @return [Boolean]
    def settled? = @settled.closed?

    # Waits until it is settled.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [self]
    # @raise [TimeoutError]
    def wait(timeout: nil)
      @settled.pop(timeout:) unless settled?
      return self if settled?

      raise TimeoutError, "the promise was not settled within #{timeout} s"
    end

    # Waits for the value.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @raise the error that it was rejected with
    # @raise [TimeoutError] when the time is over
    def value(timeout: nil)
      wait(timeout:)
      raise @error, cause: @error.cause if @error

      @value
    end

    private

    # :stopdoc:

    def settle
      @lock.synchronize do
        raise AlreadySettledError, "the promise is already settled, with #{(@error || @value).inspect}" if settled?

        yield
        @settled.close
      end
      self
    end
  end
end
