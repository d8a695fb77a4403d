# frozen_string_literal: true

# CRuby's own tests bring a framework of their own (tool/lib/test/unit.rb).
require "test/unit"
require "test/unit/testcase"

module Trials
  module Inside
    # A test of CRuby's with its setup and teardown.
    module RubyCore
      OUTCOMES = { "." => "pass", "F" => "fail", "E" => "error", "S" => "skip" }.freeze

      def run(runner)
        example = "#{self.class.name}##{__name__}"
        return "S" if Inside.skip?(example)

        # When the tests are run by a name that starts, only that one is meant.
        letter = nil
        Inside.run(example) { letter = super }
        Inside.ended(example, OUTCOMES.fetch(letter.to_s[0], letter.to_s), runner.report.last)
        letter
      end

      ::Test::Unit::TestCase.prepend(self)
    end
  end
end
