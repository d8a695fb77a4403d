# frozen_string_literal: true

require "minitest"
require "heddle/concurrency/test_loop"

module Heddle
  # Runs every test of a class in a loop of its own, its `setup` and `teardown` included. A test fails when it takes
  # longer than its time limit (at a wait; one that computes is not interrupted), when a task that it started fails,
  # and when a task or fiber that it started is still there at its end.
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
    # Seconds that a test may take. To be overridden.
    def time_limit = Concurrency::TestLoop::TIME_LIMIT

    # Called by Minitest.
    def run
      result = nil
      error = Concurrency::TestLoop.new("#{self.class}##{name}", time_limit).run { result = super }
      result ||= ::Minitest::Result.from(self)
      report_loop_failure(result, error) if error
      result
    end

    private

    # Adds the error. The cancellation of the test is not a second failure; it only shows at which line the time ended.
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
