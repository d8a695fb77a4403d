# frozen_string_literal: true

require "heddle/server"

module Heddle
  module CLI
    # The base class of commands with flags of their own. Commands that accept the server's options use {Flags} instead.
    class Command
      # @return [String]
      def self.help = new([], nil).parser.help

      # @param arguments [Array<String>] the arguments after the command's name
      # @param output [IO]
      def initialize(arguments, output)
        @arguments = arguments
        @output = output
      end

      # @return [Integer] the exit status
      # @raise [UsageError]
      def run
        rest = parser.read(@arguments, name)
        if @help
          @output.puts(parser.help)
          return DONE
        end
        accept(rest)
        act
      end

      # @return [FlagParser]
      def parser
        FlagParser.new do |options|
          options.banner = "heddle #{name}: #{COMMANDS.fetch(name).text}"
          options.separator("")
          declare(options)
          options.on("-h", "--help", "print this help") { @help = true }
        end
      end

      private

      def name = self.class::NAME

      # Handles the arguments that are not flags. Commands that accept such arguments override it.
      def accept(rest)
        return if rest.empty?

        raise UsageError, "#{name} takes no argument, but got #{rest.first}. `heddle help #{name}` lists its flags."
      end

      # Handles the arguments of a command that accepts at most one file.
      def accept_file(rest, verb = "takes")
        raise UsageError, "#{name} #{verb} one file, but got #{rest.join(", ")}" if rest.size > 1

        @file = rest.first
      end
    end
  end
end
