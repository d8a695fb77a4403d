# frozen_string_literal: true

module Heddle
  # The time accounts of requests: on what each request has spent its time. C code keeps them
  # (ext/heddle/scheduler/account.h).
  #
  # @api private
  module Account
  end
end
