# frozen_string_literal: true

require "rbconfig"

module Heddle
  # The platforms on which the tests of every protection have been run: those that docs/platforms.md calls "run".
  #
  # @api private
  module Platform
    # Architecture, as Ruby names it without the libc of GNU => versions of Ruby.
    TESTED = { "x86_64-linux" => %w[3.3 3.4 4.0], "x86_64-linux-musl" => %w[3.3] }.freeze
    # The protections that change Ruby's tables or read C frames: off by default elsewhere.
    UNTESTED_OFF = %i[offload preempt callback_report].freeze
    private_constant :TESTED

    class << self
      # @param arch [String]
      # @param version [String] of Ruby
      # @return [String, nil] why {UNTESTED_OFF} are off by default; nil: they are not
      def untested(arch: RbConfig::CONFIG["arch"], version: RUBY_VERSION)
        return if TESTED.fetch(arch.delete_suffix("-gnu"), []).include?(version[/\A\d+\.\d+/])

        "not tested on #{arch} with Ruby #{version[/\A\d+\.\d+/]}"
      end
    end
  end
end
