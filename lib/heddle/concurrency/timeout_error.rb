# frozen_string_literal: true

require "timeout"

module Heddle
  # Raised when a time limit has passed, for example the limit of {Heddle.timeout}. It is a `Timeout::Error`, so that
  # code for Ruby's time limits also handles it, such as `rescue Timeout::Error` and retries of HTTP clients.
  class TimeoutError < ::Timeout::Error
    include Heddle::Error
  end
end
