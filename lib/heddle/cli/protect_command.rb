# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle protect off|on`: switches the protections of a running server.
    class ProtectCommand < OrderCommand
      NAME = "protect"
      WORDS = %w[on off].freeze
      private_constant :WORDS

      private

      def accept(rest)
        @word = rest.first
        return if rest.one? && WORDS.include?(@word)

        raise UsageError, "heddle protect needs the word on or off#{", but got #{rest.join(" ")}" if rest.any?}"
      end

      def order = "protect-#{@word}"
    end
  end
end
