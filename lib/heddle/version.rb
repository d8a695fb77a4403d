# frozen_string_literal: true

module Heddle
  # The version of the gem, by semantic versioning.
  VERSION = "0.1.0.rc1"
end
