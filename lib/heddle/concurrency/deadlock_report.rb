# frozen_string_literal: true

require "heddle/concurrency/task_tree"

module Heddle
  module Concurrency
    # The text of {DeadlockError}: the tasks that wait, and on which lines.
    class DeadlockReport
      def initialize(context)
        @context = context
      end

      def to_s
        "every task waits for another, and nothing is left that could wake one of them:\n" \
          "#{TaskTree.new(@context)}" \
          "Look for the one that should wake them: who releases, pushes, signals or closes?"
      end
    end
  end
end
