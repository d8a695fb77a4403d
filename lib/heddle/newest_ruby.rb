# frozen_string_literal: true

module Heddle
  # The newest Ruby that Heddle was tried with. Offload and preemption use functions of Ruby that are in no header, and
  # that a newer Ruby may have changed.
  #
  # @api private
  module NewestRuby
    # The first two parts of its version.
    TRIED = "4.1"

    # @param version [String]
    # @return [String, nil] the line for a newer Ruby
    def self.notice(version = RUBY_VERSION)
      numbers, tried = [version, TRIED].map { |each| each.split(".").first(2).map(&:to_i) }
      "Ruby #{numbers.join(".")} is newer than #{TRIED}, the newest one that was tried" if (numbers <=> tried).positive?
    end
  end
end
