# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # The result of the translation: Heddle's file, and lines for the user.
      class PumaRewriting
        # @param file [PumaFile]
        # @param failures [Array<String>] what could not be run
        # @param outcomes [Array<PumaTranslation::Outcome>] in the order of the file
        # @param said [Array<Symbol>] options that the new file mentions
        def initialize(file, failures, outcomes, said)
          @file = file
          @failures = failures
          @outcomes = outcomes
          @said = said
        end

        # @return [String] the new file
        def text
          ["# frozen_string_literal: true\n\n#{incomplete}# Made of #{@file.name} by `heddle init`. `heddle check` " \
           "prints each option's value and its source.\n",
           *of(:carried).map { |one| paragraph(one) }, *additions, *left_in_file].join("\n")
        end

        # @return [Array<String>] lines for a terminal
        def report
          [*section("Carried over:", :carried), *section("Not needed, because Heddle does this anyway:", :needless),
           *section("Not translated:", :left), ""]
        end

        private

        def incomplete
          return if @failures.empty?

          "# INCOMPLETE: these lines of #{@file.name} could not be run, so their settings may be missing " \
            "here:\n#{@failures.map { |text| Template.comment(text) }.join}\n"
        end

        def of(kind) = @outcomes.select { |one| one.kind == kind }

        def paragraph(outcome)
          head = Template.comment("#{@file.name}:#{outcome.call.line}: #{outcome.call.source}")
          remarks = outcome.remarks.map { |text| Template.comment(text) }
          "#{head}#{remarks.join}#{outcome.lines.join("\n")}\n"
        end

        # Lines that keep Puma's defaults where Heddle's differ.
        def additions
          found = []
          unless @said.include?(:bind)
            rails = Template.comment(PumaWords::RAILS) if PumaWords.rails?
            found << "# Puma's default is to listen on every address.\n#{rails}#{PumaWords.listen}\n"
          end
          return found if @said.include?(:access_log)

          found << "# Puma's default is not to log requests.\naccess_log false\n"
        end

        def left_in_file
          left = of(:left)
          return [] if left.empty?

          rows = left.map { |one| Template.comment("#{one.call.line}: #{one.call.source}  (#{one.remarks.first})") }
          ["# Not translated:\n#{rows.join}"]
        end

        def section(title, kind)
          rows = of(kind)
          return [] if rows.empty?

          ["", title, *rows.map { |one| row(one) }]
        end

        def row(outcome)
          what = [*outcome.lines.map { |line| line.lines.first.strip }, *outcome.remarks].join("; ")
          "  #{outcome.call.line.to_s.rjust(4)}  #{outcome.call.source}\n        → #{what}"
        end
      end
    end
  end
end
