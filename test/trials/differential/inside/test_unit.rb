# frozen_string_literal: true

require "test/unit"

module Trials
  module Inside
    # A test of the gem test-unit with its setup and teardown.
    module TestUnit
      def run(result, *, **, &)
        example = "#{self.class.name}##{data_label ? "#{method_name}[#{data_label}]" : method_name}"
        return if Inside.skip?(example)

        before = result.faults.size
        Inside.run(example, file: TestUnit.file(self.class)) { super }
        faults = result.faults.drop(before)
        Inside.ended(example, TestUnit.outcome(faults), faults.first&.message)
      end

      # @return [String, nil] where the class is written, relative to the suite's folder
      def self.file(test_case)
        path, = Object.const_source_location(test_case.name) if test_case.name
        path && File.expand_path(path).delete_prefix("#{Dir.pwd}/")
      end

      def self.outcome(faults)
        labels = faults.map(&:label)
        return "error" if labels.include?("Error")
        return "fail" if labels.include?("Failure")

        labels.intersect?(%w[Omission Pending]) ? "skip" : "pass"
      end

      ::Test::Unit::TestCase.prepend(self)
    end
  end
end
