# frozen_string_literal: true

module Bench
  # The line that tells most about why a program ended.
  module LastWords
    module_function

    # @param output [String] what it printed
    # @return [String] paths say nothing to a reader and everything about the machine: they are left out
    def of(output)
      lines = output.lines.map(&:strip).reject(&:empty?)
      line = lines.find { |text| text.match?(/error|bug|abort|fail/i) }
      line ? line.gsub(%r{(?:/[\w.+-]+)+/}, "")[0, 160] : "it printed no error"
    end
  end
end
