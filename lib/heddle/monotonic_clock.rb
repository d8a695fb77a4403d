# frozen_string_literal: true

module Heddle
  # The monotonic clock, for time limits: changes of the system time don't affect it.
  # @api private
  module MonotonicClock
    module_function

    # @return [Float] seconds since an unspecified point in time, such as the boot of the machine
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
