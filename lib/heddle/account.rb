# frozen_string_literal: true

module Heddle
  # The request that the calling fiber serves, as it is now.
  #
  # @!attribute account [Hash{Symbol => Object}] on what it has spent its time, in seconds: a key for each part that has
  #   occurred ({file:docs/observability.md}), `other`, and `total`, their sum without `proxy`. `waits` has how often
  #   each part was begun, `libraries` the time in offloaded native libraries, and `tasks` the parts of the tasks that
  #   the request has started, which count beside it.
  Request = Data.define(:account)

  # The time accounts of requests, which the extension keeps (ext/heddle/scheduler/account.h).
  #
  # @api private
  module Account
  end
end
