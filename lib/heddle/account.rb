# frozen_string_literal: true

module Heddle
  # The time accounts of requests, which the extension keeps (ext/heddle/scheduler/account.h).
  #
  # @api private
  module Account
  end
end
