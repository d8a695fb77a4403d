# frozen_string_literal: true

module Heddle
  module CLI
    # Renders lines for a terminal: cuts them to its width, and colours them. A line is a String, or an Array whose
    # elements are Strings or pairs of a String and its style.
    class Screen
      # SGR codes (ECMA-48) of the styles. They use only the 16 colours that a terminal's theme defines.
      STYLES = { title: "1", quiet: "2", bad: "31" }.freeze
      private_constant :STYLES

      # @param output [IO]
      # @param environment [Hash{String => String}]
      # @return [Boolean] whether to use colours: the output is a terminal, TERM is not "dumb", and NO_COLOR is empty or
      #   not set
      def self.coloured?(output, environment = ENV)
        output.respond_to?(:tty?) && output.tty? && environment.fetch("NO_COLOR", "").empty? &&
          environment["TERM"] != "dumb"
      end

      # @param columns [Integer, nil] the terminal's width; nil: lines are not cut
      # @param colour [Boolean]
      def initialize(columns: nil, colour: false)
        @columns = columns
        @colour = colour
      end

      # @param line [String, Array]
      # @return [String]
      def render(line)
        left = @columns || Float::INFINITY
        Array(line).map do |text, style|
          text = PrintableText.line(text)
          part = left.finite? ? text[0, left] : text
          left -= part.length
          @colour && style && !part.empty? ? "\e[#{STYLES.fetch(style)}m#{part}\e[0m" : part
        end.join
      end
    end
  end
end
