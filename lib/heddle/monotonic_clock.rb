# frozen_string_literal: true

module Heddle
  # A clock that can't be set, for time limits.
  # @api private
  module MonotonicClock
    module_function

    # @return [Float] seconds since some moment before this process began
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
