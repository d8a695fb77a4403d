# frozen_string_literal: true

module Heddle
  # The clock for time limits, which can't be set.
  # @api private
  module MonotonicClock
    module_function

    # @return [Float] seconds since some moment before this process began
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
