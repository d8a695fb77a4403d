# frozen_string_literal: true

module Heddle
  # Something that needs a loop was called where none runs.
  class NoLoopError < RuntimeError; end

  # A task was to be started in a scope that has ended.
  class ScopeEnded < RuntimeError; end

  # The value of a task was asked for that was cancelled.
  class TaskCancelled < StandardError; end
end
