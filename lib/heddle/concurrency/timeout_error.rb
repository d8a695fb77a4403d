# frozen_string_literal: true

require "timeout"

module Heddle
  # The time that was given to {Heddle.timeout} is over. A `Timeout::Error`, so that code which handles Ruby's own
  # (`rescue Timeout::Error`, the retries of HTTP clients) handles this one.
  class TimeoutError < ::Timeout::Error
    include Heddle::Error
  end
end
