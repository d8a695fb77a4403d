# frozen_string_literal: true

require "heddle/error"

module Heddle
  # Something that needs a loop was called where none runs.
  class NoLoopError < RuntimeError
    include Heddle::Error
  end

  # A task was to be started in a scope that has ended.
  class ScopeEndedError < RuntimeError
    include Heddle::Error
  end

  # The value of a cancelled task was asked for.
  class TaskCancelledError < StandardError
    include Heddle::Error
  end
end
