# frozen_string_literal: true

require "minitest"
require "heddle/concurrency/test_loop"

module Heddle
  # Runs every test of a class, with its `setup` and `teardown`, in a separate event loop. A test fails if it takes
  # longer than its time limit, if a task that it started fails, or if a task or fiber that it started still exists at
  # its end. Background tasks that still exist then are cancelled instead. The time limit interrupts a test where it
  # waits, not while it computes.
  #
  #     require "heddle/minitest"
  #
  #     class EchoTest < Minitest::Test
  #       include Heddle::Minitest
  #
  #       def test_two_things_at_once
  #         assert_equal 3, Heddle.map([1, 2]) { |n| n }.sum
  #       end
  #     end
  module Minitest
    # The time limit of a test, in seconds. Test classes may override it.
    def time_limit = Concurrency::TestLoop::TIME_LIMIT

    # Minitest calls this method for each test.
    def run
      result = nil
      error = Concurrency::TestLoop.new("#{self.class}##{name}", time_limit).run { result = super }
      result ||= ::Minitest::Result.from(self)
      report_loop_failure(result, error) if error
      result
    end

    private

    # Adds the error to the result. If the time limit has cancelled the test, removes the failure that the cancellation
    # has caused. The error gets the backtrace of that failure, which shows where the test was.
    def report_loop_failure(result, error)
      cancelled = result.failures.find do |failure|
        failure.is_a?(::Minitest::UnexpectedError) && failure.error.is_a?(Cancelled)
      end
      if cancelled
        result.failures.delete(cancelled)
        error.set_backtrace(cancelled.error.backtrace) if error.is_a?(TimeoutError)
      end
      result.failures << ::Minitest::UnexpectedError.new(error)
    end
  end
end
