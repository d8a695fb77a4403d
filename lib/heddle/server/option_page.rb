# frozen_string_literal: true

module Heddle
  class Server
    # The documentation of one option: its effect, default, example, flag, variable and method.
    class OptionPage
      WIDTH = 96
      private_constant :WIDTH

      # @param option [Option]
      def initialize(option)
        @option = option
      end

      # @return [String] for a terminal
      def text
        rows = facts.map { |name, fact| "  #{name.ljust(9)} #{fact}" }
        details = option.details && "\n\n#{wrap(option.details)}"
        "#{option.name}: #{option.text}. #{option.reason}.\n\n#{rows.join("\n")}#{details}"
      end

      # @return [String] for the documentation
      def markdown
        rows = facts.map { |name, fact| "| #{name} | #{name == "default" ? fact : code(fact)} |" }
        ["### #{option.name}", "", "#{option.sentences}#{" #{option.details}" if option.details}", "",
         "| | |", "| - | - |", *rows].join("\n") << "\n"
      end

      private

      attr_reader :option

      def facts
        { "default" => option.default_text, "values" => values, "flag" => flags, "variable" => variables,
          "file" => option.example }.reject { |_, fact| fact.nil? || fact.empty? }
      end

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
        bounds = range.end ? "from #{range.begin} to #{range.end}" : "at least #{range.begin}"
        "#{Options::Units::WANTED.fetch(option.unit)}, #{bounds}"
      end

      # Names are set as code, the words around them are not.
      def code(fact)
        return "`#{fact}`" if fact == option.example
        return fact if fact == values && !option.choices

        fact.split(", ").map { |part| part.sub(/\A(\S+(?: [A-Z]+)?)(.*)\z/, '`\1`\2') }.join(", ")
      end

      def wrap(words) = words.scan(/\S.{0,#{WIDTH - 1}}(?=\s|\z)/).join("\n")
    end
  end
end
