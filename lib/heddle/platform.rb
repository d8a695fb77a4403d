# frozen_string_literal: true

require "rbconfig"

module Heddle
  # The platforms on which the tests of all protections have run. docs/platforms.md lists them with the word "run".
  #
  # @api private
  module Platform
    # Ruby's name of the architecture without the suffix -gnu => the tested versions of Ruby.
    TESTED = { "x86_64-linux" => %w[3.3 3.4 4.0], "x86_64-linux-musl" => %w[3.3] }.freeze
    # The protections that change the import tables of libraries, or read the C frames of a fiber. They are off by
    # default on platforms not in TESTED.
    UNTESTED_OFF = %i[offload preempt callback_report].freeze
    private_constant :TESTED

    class << self
      # @param arch [String] Ruby's name of the architecture
      # @param version [String] the version of Ruby
      # @return [String, nil] why the protections in {UNTESTED_OFF} are off by default; nil: they are on
      def untested(arch: RbConfig::CONFIG["arch"], version: RUBY_VERSION)
        return if TESTED.fetch(arch.delete_suffix("-gnu"), []).include?(version[/\A\d+\.\d+/])

        "not tested on #{arch} with Ruby #{version[/\A\d+\.\d+/]}"
      end

      # @param version [String] the version of Ruby
      # @return [String, nil] a notice if this version is newer than all versions in {TESTED}
      def newer_ruby(version = RUBY_VERSION)
        newest = TESTED.values.flatten.max_by { |tested| numbers(tested) }
        return unless (numbers(version) <=> numbers(newest)).positive?

        "Ruby #{numbers(version).join(".")} is newer than #{newest}, the newest version that Heddle was tested with"
      end

      private

      def numbers(version) = version.split(".").first(2).map(&:to_i)
    end
  end
end
