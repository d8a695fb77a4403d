# frozen_string_literal: true

require "heddle/server"

module Heddle
  module CLI
    # Parses the server's flags, one for each option: `--port 3000`, `--port=3000`, `-p 3000`, `-p3000`, `--access-log`,
    # `--no-access-log`.
    class Flags
      NAMES = Options::ALL.flat_map do |option|
        [option.flag, *option.short, *(option.flag.sub("--", "--no-") if option.unit == :switch)]
      end.freeze
      private_constant :NAMES

      # @param word [String]
      # @return [Boolean] whether the word is the flag of an option, with or without a value
      def self.known?(word) = NAMES.include?(word.b[/\A(?:--[^=]+|-.)/])

      # @return [Hash{Symbol => String, Boolean, Array<String>}] the values by option, as the user wrote them
      attr_reader :values
      # @return [Array<String>] arguments that are not flags
      attr_reader :rest
      # @return [Array<String>] further arguments for {Help.for}: `--all`, if the user gave it
      attr_reader :help_words

      # @param arguments [Array<String>]
      # @raise [UsageError]
      def initialize(arguments)
        @values = {}
        @help_words = []
        @rest = parser.read(arguments, "serve")
        raise UsageError, "--all needs --help. `heddle help serve` lists the flags." if @help_words.any? && !@help
      end

      # @return [Boolean] whether the arguments have --help or -h
      def help? = @help || false

      private

      def parser
        FlagParser.new do |flags|
          switches, others = Options::ALL.partition { |option| option.unit == :switch }
          others.each { |one| flags.on(*one.short, "#{one.flag} VALUE") { |value| set(one, value) } }
          switches.each do |one|
            flags.on(one.flag) { set(one, true) }
            flags.on(one.flag.sub("--", "--no-")) { set(one, false) }
          end
          flags.on("-h", "--help") { @help = true }
          flags.on("--all") { @help_words << "--all" }
        end
      end

      def set(option, value)
        return @values[option.name] = value unless option.unit == :list

        (@values[option.name] ||= []) << value
      end
    end
  end
end
