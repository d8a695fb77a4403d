# frozen_string_literal: true

module Heddle
  # The request that the calling fiber serves.
  #
  # @!attribute account [Hash{Symbol => Object}] the time that the request has spent so far, in seconds. It has a key
  #   for each part that has occurred ({file:docs/observability.md}), `other`, and `total`, the sum of all but `proxy`.
  #   `waits` counts how often each part was begun, `libraries` has the time in offloaded native libraries, and `tasks`
  #   the parts of the tasks that the request has started, which are not in the total.
  Request = Data.define(:account)
end
