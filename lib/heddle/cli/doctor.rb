# frozen_string_literal: true

require "heddle/server"

module Heddle
  module CLI
    # Checks the machine and a loaded application for likely problems under Heddle.
    class Doctor
      Autoloads.add(self, "heddle/cli/doctor")

      # @!attribute level [Symbol] :ok; :note: information; :warning: may cause trouble in production; :problem: the
      #   server can't start, or responses can be wrong
      # @!attribute subject [String] what was checked
      # @!attribute text [String] what was found
      # @!attribute advice [String, nil] what to do
      Finding = Data.define(:level, :subject, :text, :advice) do
        def initialize(level:, subject:, text:, advice: nil) = super

        # @return [String]
        def to_s = "#{MARKS.fetch(level)} #{subject}: #{text}#{"\n    #{advice}" if advice}"
      end
      MARKS = { ok: "ok", note: "--", warning: "! ", problem: "!!" }.freeze

      # @param configuration [Server::Configuration] the server's
      # @param loaded [Boolean] whether an application was loaded
      def initialize(configuration, loaded:)
        @configuration = configuration
        @loaded = loaded
      end

      # @return [Array<Finding>]
      def findings
        found = Machine.new(@configuration).findings
        return found unless @loaded

        [*found, *Deployment.new.findings, *ProcessState.new(@configuration).findings,
         *Libraries.new(mode: @configuration.mode).findings, *adapted, *reloading]
      end

      private

      # Findings about the gems that the server adapts, and about gems that it leaves as they are, because an option
      # excludes them or Heddle was not tested with their version.
      def adapted
        Adaptations.by_state(@configuration).flat_map do |state, rows|
          rows.map do |row|
            case state
            when :made then Finding.new(level: :ok, subject: row.to_s, text: "adapted: #{row.changes}")
            when :excluded
              level = shared?(row) ? :problem : :note # if shared, requests see each other's state
              Finding.new(level:, subject: row.to_s,
                          text: "not adapted, because the option adapt or isolate excludes it. The change would be: " \
                                "#{row.changes}",
                          advice: ("add #{row.variable} to the option isolate" if shared?(row)))
            else Finding.new(level: :warning, subject: row.to_s, text: Adaptations.untried(row),
                             advice: "update Heddle, or use a version of the gem that Heddle was tested with")
            end
          end
        end
      end

      # Do requests share the gem's state, because the gem is not adapted? Newer versions of Sentry can keep their state
      # (a hub) for each fiber by themselves.
      def shared?(row)
        return false unless row.variable

        settings = ::Sentry.configuration if row.name == :sentry_ruby
        !(settings.respond_to?(:hub_isolation_level) && settings.hub_isolation_level == :fiber)
      end

      def reloading
        return unless defined?(::Rails.application) && ::Rails.application&.config&.enable_reloading

        Finding.new(level: :note, subject: "Rails", text: "reloading of code is on (environment #{::Rails.env})",
                    advice: "to check what production uses, run RAILS_ENV=production heddle doctor")
      end
    end
  end
end
