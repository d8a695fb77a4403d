# frozen_string_literal: true

module Heddle
  # The request that the calling fiber serves.
  #
  # @!attribute account [Hash{Symbol => Object}] on what the request has spent its time so far, in seconds. The keys
  #   with a number are the parts that have occurred ({file:docs/observability.md}), `other`, and `total` (the sum of
  #   all parts except `proxy`). The keys with a Hash are `waits` (the number of waits by part, including those of
  #   tasks), `libraries` (the time in each offloaded native library), and `tasks` (the parts of the tasks that the
  #   request has started; `total` does not include them).
  Request = Data.define(:account)
end
