# frozen_string_literal: true

module Heddle
  class Server
    # The text of `heddle help OPTION`: the option's effect, default, values, flag, variable and example.
    class OptionPage
      WIDTH = 96
      # A link from docs/options.md to another page.
      LINK = /\[[^\]]+\]\((\S+)\)/
      private_constant :WIDTH, :LINK

      # @param option [Option]
      def initialize(option)
        @option = option
      end

      # @return [String] for a terminal
      def text
        rows = attributes.map { |name, value| "  #{name.ljust(9)} #{value}" }
        details = option.details && "\n\n#{wrap(option.details.gsub(LINK, "docs/\\1"))}"
        "#{option.name}: #{option.text}. #{option.reason}.\n\n#{rows.join("\n")}#{details}"
      end

      # @return [Hash{String => String}] the option's default, values, flag, variable, and an example for the
      #   configuration file; entries that do not apply to the option are left out
      def attributes
        { "default" => option.default_text, "values" => values, "flag" => flags, "variable" => variables,
          "file" => option.example }.reject { |_, value| value.nil? || value.empty? }
      end

      private

      attr_reader :option

      def flags
        return "#{option.flag}, --no-#{option.flag.delete_prefix("--")}" if option.unit == :switch

        [option.short, option.flag].compact.map { |flag| "#{flag} #{option.argument}" }.join(", ")
      end

      def variables
        only = option.conditions.map do |name, wanted|
          "#{name} (with #{wanted.map { |other, value| "#{other} #{value}" }.join(", ")})"
        end
        [*option.variables, *only].join(", ")
      end

      def values
        return [*option.choices, *option.none].join(", ") if option.choices

        range = option.range or return Options::Units::WANTED.fetch(option.unit)
        "#{Options::Units::WANTED.fetch(option.unit)}, from #{range.begin} to #{range.end}"
      end

      def wrap(words) = words.scan(/\S.{0,#{WIDTH - 1}}(?=\s|\z)/).join("\n")
    end
  end
end
