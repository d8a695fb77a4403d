# frozen_string_literal: true

module Heddle
  # The request that the calling fiber serves.
  #
  # @!attribute account [Hash{Symbol => Object}] on what the request has spent its time so far, in seconds. The keys are
  #   the parts that have occurred ({file:docs/observability.md}), `other`, and `total` (the sum of all parts except
  #   `proxy`). `waits` counts how often each part has begun. `libraries` has the time in offloaded native libraries.
  #   `tasks` has the parts of the tasks that the request has started; `total` does not include them.
  Request = Data.define(:account)
end
