# frozen_string_literal: true

module Heddle
  # Extends the error that has ended a scope with the errors of the scope's other tasks. These tasks may have failed
  # before they were cancelled, or during their clean-up.
  module FurtherFailures
    # @return [Array<Exception>] the errors of the other tasks, the earliest first
    def further_failures = @further_failures || []

    # Adds the other errors to the text that Ruby prints for an uncaught error.
    def detailed_message(...)
      further_failures.reduce(super) do |text, error|
        place = error.backtrace&.first
        "#{text}\n  and another task failed: #{error.message} (#{error.class})#{" at #{place}" if place}"
      end
    end
  end

  module Concurrency # rubocop:disable Style/Documentation -- in heddle/concurrency
    # @param error [Exception] the error to extend with {FurtherFailures}
    # @param others [Array<Exception>] the errors to add
    def self.attach_failures(error, others)
      return if error.frozen?

      error.extend(FurtherFailures) unless error.is_a?(FurtherFailures)
      error.instance_variable_set(:@further_failures, error.further_failures | others)
    end
  end
end
