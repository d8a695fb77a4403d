# frozen_string_literal: true

require "timeout"

module Heddle
  # Raised when the time limit of {Heddle.timeout} has passed. It is a `Timeout::Error`, so code that handles Ruby's
  # time limits (`rescue Timeout::Error`, retries of HTTP clients) also handles this one.
  class TimeoutError < ::Timeout::Error
    include Heddle::Error
  end
end
