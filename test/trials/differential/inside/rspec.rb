# frozen_string_literal: true

require "rspec/core"

module Trials
  module Inside
    # An example of RSpec with its hooks.
    module RSpec
      def run(instance, reporter)
        example = "#{location_rerun_argument} #{full_description}".gsub(/0x\h+/, "0x")
        return true if Inside.skip?(example)

        passed = nil
        Inside.run(example) { passed = super }
        Inside.ended(example, RSpec.outcome(execution_result), execution_result.exception&.message)
        passed
      end

      def self.outcome(result)
        return "skip" if result.status == :pending
        return "pass" if result.status == :passed

        expectations = defined?(::RSpec::Expectations::ExpectationNotMetError)
        expectations && result.exception.is_a?(::RSpec::Expectations::ExpectationNotMetError) ? "fail" : "error"
      end

      ::RSpec::Core::Example.prepend(self)
    end
  end
end
