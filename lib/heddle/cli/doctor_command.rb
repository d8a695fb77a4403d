# frozen_string_literal: true

require "json"

module Heddle
  module CLI
    # `heddle doctor [config.ru]`: checks an application and this machine for problems under Heddle.
    class DoctorCommand < Command
      NAME = "doctor"

      private

      def declare(options)
        options.banner = "heddle doctor [config.ru]: #{COMMANDS.fetch(NAME).text}"
        options.on("--json", "print JSON") { @json = true }
      end

      def accept(rest) = accept_file(rest)

      # The exit status is 1 if there is a finding of level :problem.
      def act
        broken = [configure, load(@file)].compact
        findings = broken + Doctor.new(@configuration, loaded: @loaded).findings
        findings = findings.sort_by.with_index { |one, i| [-severity(one), i] } if @json.nil?
        @output.puts(@json ? JSON.pretty_generate(findings.map(&:to_h)) : findings.map(&:to_s))
        findings.any? { |one| one.level == :problem } ? FAILED : DONE
      end

      def severity(finding) = Doctor::MARKS.keys.index(finding.level)

      # Loads the configuration. If it has a mistake, the checks use the defaults.
      def configure
        @configuration = Server::Configuration.load
        nil
      rescue Server::ConfigurationError => e
        @configuration = Server::Configuration.new
        Doctor::Finding.new(level: :problem, subject: "configuration", text: e.message,
                            advice: "correct this; heddle check validates the configuration without the application")
      end

      # Loads the application in the same environment as the server would. Without an application, only the machine is
      # checked.
      def load(path)
        if path.nil? && !File.exist?(CONFIG)
          return Doctor::Finding.new(level: :note, subject: "application", text: "this folder has no #{CONFIG}",
                                     advice: "to check an application, run heddle doctor in its folder, or pass its " \
                                             "file: heddle doctor path/to/config.ru")
        end

        @configuration.export_environment
        Server::AppLoader.new(path || CONFIG).load
        Rails.start(fibers: @configuration.mode == :fiber) if defined?(::ActiveSupport)
        Databases.start(fibers: @configuration.mode == :fiber)
        @loaded = true
        nil
      rescue Server::BootError => e
        Doctor::Finding.new(level: :problem, subject: "application", text: e.message,
                            advice: "correct this, then run heddle doctor again")
      end
    end
  end
end
