# frozen_string_literal: true

require "heddle/server"
require "json"
require "optparse"

module Heddle
  module CLI
    # `heddle doctor [config.ru]`: checks an application and this machine.
    class DoctorCommand
      DEFAULT = "config.ru"
      private_constant :DEFAULT

      # @return [String]
      def self.help = new([], nil).parser.help

      # @param arguments [Array<String>] what follows the command's name
      # @param output [IO]
      def initialize(arguments, output)
        @arguments = arguments
        @output = output
      end

      # @return [Integer] the exit status: {FAILED} where something would answer wrongly
      # @raise [UsageError]
      def run
        rest = parser.parse(@arguments)
        raise UsageError, "doctor takes one file, but got #{rest.join(", ")}" if rest.size > 1
        return help if @help

        examine(rest.first)
      rescue OptionParser::ParseError => e
        raise UsageError, "#{e.message}: heddle help doctor lists the flags"
      end

      # @return [OptionParser]
      def parser
        OptionParser.new do |options|
          options.banner = "heddle doctor [config.ru]: #{COMMANDS.fetch("doctor").text}"
          options.separator("")
          options.on("--json", "print JSON") { @json = true }
          options.on("-h", "--help", "print this help") { @help = true }
          options.require_exact = true
        end
      end

      private

      def help
        @output.puts(parser.help)
        DONE
      end

      def examine(path)
        broken = [configure, load(path)].compact
        findings = broken + Doctor.new(@configuration, loaded: @loaded).findings
        findings = findings.sort_by.with_index { |one, i| [-severity(one), i] } if @json.nil?
        @output.puts(@json ? JSON.pretty_generate(findings.map(&:to_h)) : findings.map(&:to_s))
        findings.any? { |one| one.level == :problem } ? FAILED : DONE
      end

      def severity(finding) = Doctor::MARKS.keys.index(finding.level)

      # The configuration of the server; with a mistake in it, the defaults.
      def configure
        @configuration = Server::Configuration.load
        nil
      rescue Server::ConfigurationError => e
        @configuration = Server::Configuration.new
        Doctor::Finding.new(level: :problem, subject: "configuration", text: e.message,
                            advice: "heddle check validates the configuration alone")
      end

      # Without an application there is still the machine. Rails gets the same environment as when it is served.
      def load(path)
        if path.nil? && !File.exist?(DEFAULT)
          return Doctor::Finding.new(level: :note, subject: "application", text: "there is no #{DEFAULT} here",
                                     advice: "run it in the application's folder, or name the file: heddle doctor " \
                                             "path/to/config.ru")
        end

        @configuration.export_environment
        Server::AppLoader.new(path || DEFAULT).load
        Rails.start(fibers: @configuration.mode == :fiber) if defined?(::ActiveSupport)
        Databases.start(fibers: @configuration.mode == :fiber)
        @loaded = true
        nil
      rescue Server::BootError => e
        Doctor::Finding.new(level: :problem, subject: "application", text: e.message,
                            advice: "then run heddle doctor again")
      end
    end
  end
end
