# frozen_string_literal: true

require "heddle/server"

module Heddle
  module CLI
    # Looks at the machine, and at an application that was loaded, for things that matter once Heddle serves it. Each
    # finding says what to do.
    class Doctor
      Autoloads.add(self, "heddle/cli/doctor")

      # @!attribute level [Symbol] :ok, :note (worth knowing), :warning (matters under load), :problem (wrong answers)
      # @!attribute subject [String] what was looked at
      # @!attribute text [String] what was found
      # @!attribute advice [String, nil] what to do
      Finding = Data.define(:level, :subject, :text, :advice) do
        def initialize(level:, subject:, text:, advice: nil) = super

        # @return [String]
        def to_s = "#{MARKS.fetch(level)} #{subject}: #{text}#{"\n    #{advice}" if advice}"
      end
      MARKS = { ok: "ok", note: "--", warning: "! ", problem: "!!" }.freeze

      # @param configuration [Server::Configuration] with which it will be served
      # @param loaded [Boolean] whether an application was loaded
      def initialize(configuration, loaded:)
        @configuration = configuration
        @loaded = loaded
      end

      # @return [Array<Finding>]
      def findings
        found = Machine.new(@configuration).findings
        return found unless @loaded

        found += Deployment.new(@configuration).findings
        mode, isolated = @configuration.mode, @configuration.isolate
        found + Libraries.new(mode:, isolated:).findings + adapted + Application.new(mode:).findings
      end

      private

      # Every gem that the server changes.
      def adapted
        Adaptations.by_state(@configuration).flat_map do |state, rows|
          rows.map do |row|
            case state
            when :made then Finding.new(level: :ok, subject: row.to_s, text: "adapted: #{row.changes}")
            when :excluded
              Finding.new(level: :note, subject: row.to_s, text: "not adapted, as the options say (#{row.changes})")
            else Finding.new(level: :warning, subject: row.to_s, text: Adaptations.untried(row),
                             advice: "a newer Heddle may know it; else take a version that was tried")
            end
          end
        end
      end
    end
  end
end
