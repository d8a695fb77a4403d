# frozen_string_literal: true

require "heddle/concurrency/timeout_error"

module Heddle
  # A value that will be available later. Any thread may settle a promise, but only once. Any number of tasks and
  # threads may wait for it, with or without a loop.
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
      @settled = Thread::Queue.new # always empty; closing it wakes all waiters in all threads
      @value = @error = nil
    end

    # Settles the promise with a value.
    #
    # @return [self]
    # @raise [AlreadySettledError]
    def resolve(value = nil)
      settle { @value = value }
    end

    # Settles the promise with an error, which every call of {#value} raises.
    #
    # @param error [Exception, Class, String] as for `raise`
    # @return [self]
    # @raise [AlreadySettledError]
    def reject(error)
      error = RuntimeError.new(error) if error.is_a?(String)
      Arguments.refuse("the error", error, "an exception, its class or a String") unless error.respond_to?(:exception)
      error = error.exception
      settle { @error = error }
    end

    # Settles the promise with the block's result, or with the StandardError that the block raises.
    #
    # @return [self]
    # @raise [AlreadySettledError]
    def fulfil
      value = yield
    rescue StandardError => e
      raise ArgumentError, "Heddle::Promise#fulfil needs a block that computes the value" unless block_given?

      reject(e)
    else
      resolve(value)
    end

    # @return [Boolean]
    def settled? = @settled.closed?

    # Waits until the promise is settled.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    # @return [self]
    # @raise [TimeoutError]
    def wait(timeout: nil)
      @settled.pop(timeout: Arguments.wait("timeout:", timeout)) unless settled?
      return self if settled?

      raise TimeoutError, "the promise was not settled within #{timeout} s"
    end

    # Waits for the value.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    # @return the value
    # @raise the error passed to {#reject}
    # @raise [TimeoutError] when the timeout has passed
    def value(timeout: nil)
      wait(timeout:)
      raise @error, cause: @error.cause if @error

      @value
    end

    private

    # :stopdoc:

    def settle
      @lock.synchronize do
        raise AlreadySettledError, "the promise is already settled with #{(@error || @value).inspect}" if settled?

        yield
        @settled.close
      end
      self
    end
  end
end
