# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # The result of translating Puma's configuration file: the text of Heddle's file, and a report for the user.
      class PumaRewriting
        # @param file [PumaFile]
        # @param failures [Array<String>] the statements of Puma's file that failed, with their places
        # @param outcomes [Array<PumaTranslation::Outcome>] in the order of the file
        # @param mentioned [Array<Symbol>] options that the new file mentions
        def initialize(file, failures, outcomes, mentioned)
          @file = file
          @failures = failures
          @outcomes = outcomes
          @mentioned = mentioned
        end

        # @return [String] the new file
        def text
          ["# frozen_string_literal: true\n\n#{incomplete}# Made from #{@file.name} by `heddle init`. `heddle check` " \
           "prints each option's value and its source.\n",
           *of(:translated).map { |one| paragraph(one) }, *additions, *skipped_in_file].join("\n")
        end

        # @return [Array<String>] lines for a terminal
        def report
          [*section("Translated:", :translated), *section("Not needed in Heddle's file:", :needless),
           *section("Not translated:", :skipped), ""]
        end

        private

        def incomplete
          return if @failures.empty?

          "# INCOMPLETE: these lines of #{@file.name} failed, so their settings may be missing " \
            "here:\n#{@failures.map { |text| Template.comment(text) }.join}\n"
        end

        def of(kind) = @outcomes.select { |one| one.kind == kind }

        def paragraph(outcome)
          head = Template.comment("#{@file.name}:#{outcome.call.line}: #{outcome.call.source}")
          remarks = outcome.remarks.map { |text| Template.comment(text) }
          "#{head}#{remarks.join}#{outcome.lines.join("\n")}\n"
        end

        # Lines that keep defaults of Puma that differ from Heddle's defaults.
        def additions
          found = []
          unless @mentioned.include?(:bind)
            rails = Template.comment(PumaSettings::RAILS) if PumaSettings.rails?
            found << "# By default, Puma listens on every address.\n#{rails}#{PumaSettings.listen}\n"
          end
          return found if @mentioned.include?(:access_log)

          found << "# By default, Puma does not log requests.\naccess_log false\n"
        end

        def skipped_in_file
          left = of(:skipped)
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
