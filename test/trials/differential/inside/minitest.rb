# frozen_string_literal: true

require "minitest"

module Trials
  module Inside
    # A test of minitest with its setup and teardown.
    module Minitest
      def run
        example = "#{self.class.name}##{name}"
        return ::Minitest::Result.from(self) if Inside.skip?(example)

        result = nil
        Inside.run(example) { result = super }
        Inside.ended(example, Minitest.outcome(result), result.failure&.message)
        result
      end

      def self.outcome(result)
        return "skip" if result.skipped?
        return "error" if result.error?

        result.passed? ? "pass" : "fail"
      end

      ::Minitest::Test.prepend(self)
    end
  end
end
