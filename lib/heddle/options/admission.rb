# frozen_string_literal: true

module Heddle
  module Options
    # How many requests run and wait at once.
    ADMISSION = [
      Option.new(name: :max_requests, unit: :count, default: 0, range: 0..1_000_000, advanced: true,
                 example: "max_requests 50",
                 text: "maximum number of requests that run at once in each worker; 0 to adapt the number to memory " \
                       "and connection pools",
                 reason: "Set it when you know how many requests fit, for example because each needs 50 MB",
                 details: "One client address outside of trusted_proxies may have at most three quarters of these " \
                          "requests. See [Fairness](admission.md#fairness)."),
      Option.new(name: :queue_limit, unit: :count, default: 1_024, range: 1..1_000_000, advanced: true,
                 text: "maximum number of queued requests in each worker; further requests get 503",
                 reason: "Raise it when bursts of requests get 503; lower it when clients should get 503 sooner"),
      Option.new(name: :queue_timeout, unit: :seconds, default: 10, range: 0.001..86_400, advanced: true,
                 text: "maximum time that a request waits in the queue; after it the request gets 503",
                 reason: "Set it below the timeout of the proxy in front"),
      Option.new(name: :memory_limit, unit: :bytes, default: 0, range: 0..(1 << 50), advanced: true,
                 example: 'memory_limit "1g"',
                 text: "maximum memory of all processes of the server together; 0 for nine tenths of the memory of " \
                       "the container or machine",
                 reason: "Set it when other programs run in the same container or machine",
                 details: "With `workers auto`, the number of workers depends on this limit. When the processes use " \
                          "more, fewer requests run at once. Unless worker_memory_limit is set, Heddle also replaces " \
                          "a worker: the largest of those that are more than a quarter larger than the mold (the " \
                          "process that they were forked from). Heddle measures the proportional share (PSS) of each " \
                          "process. See [Memory](processes.md#memory).")
    ].freeze
  end
end
