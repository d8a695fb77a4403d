# frozen_string_literal: true

require "heddle/error"

module Heddle
  # Raised when a method that needs Heddle's event loop is called outside of such a loop.
  class NoLoopError < RuntimeError
    include Heddle::Error
  end

  # Raised when a task is started in a scope that has ended.
  class ScopeEndedError < RuntimeError
    include Heddle::Error
  end

  # Raised when the value of a cancelled task is requested.
  class TaskCancelledError < OwnError; end
end
