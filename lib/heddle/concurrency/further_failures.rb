# frozen_string_literal: true

module Heddle
  # Extends the error that has ended a scope, so that no failure is lost: other tasks may have failed before they could
  # be cancelled, or while they cleaned up.
  module FurtherFailures
    # @return [Array<Exception>] the errors of the other tasks, the earliest first
    def further_failures = @further_failures || []

    # The message as Ruby prints it for an error that no code rescued.
    def detailed_message(...)
      further_failures.reduce(super) do |text, error|
        place = error.backtrace&.first
        "#{text}\n  and another task failed: #{error.message} (#{error.class})#{" at #{place}" if place}"
      end
    end
  end

  module Concurrency # rubocop:disable Style/Documentation -- in heddle/concurrency
    # @param error [Exception] the error that is extended with {FurtherFailures}
    # @param others [Array<Exception>]
    def self.attach_failures(error, others)
      return if error.frozen?

      error.extend(FurtherFailures) unless error.is_a?(FurtherFailures)
      error.instance_variable_set(:@further_failures, error.further_failures | others)
    end
  end
end
