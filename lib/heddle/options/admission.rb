# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # How many requests run and wait at once.
    ADMISSION = [
      Option.new(name: :max_requests, unit: :count, default: 0, range: 0..1_000_000, advanced: true,
                 example: "max_requests 50",
                 text: "how many requests run at once, the others wait; with 0 as many as the loop and the memory " \
                       "bear"),
      Option.new(name: :queue_limit, unit: :count, default: 1_024, range: 1..1_000_000, advanced: true,
                 text: "how many requests wait when as many run as may; more are answered with 503"),
      Option.new(name: :queue_timeout, unit: :seconds, default: 10, range: 0.001..86_400, advanced: true,
                 text: "how long a request waits for its turn; then the answer is 503"),
      Option.new(name: :lag_target, unit: :seconds, default: 0.25, range: 0.001..3_600, advanced: true,
                 text: "how late the loop may be before fewer requests run at once"),
      Option.new(name: :memory_limit, unit: :bytes, default: 0, range: 0..(1 << 50), advanced: true,
                 example: 'memory_limit "1g"',
                 text: "memory above which fewer requests run at once; with 0 nine tenths of what the container or " \
                       "the machine has")
    ].freeze
  end
end
