# frozen_string_literal: true

require "heddle/server"
require "optparse"

module Heddle
  module CLI
    # The base class of commands with flags of their own. Commands that accept the server's options use {Flags} instead.
    class Command
      # Removes OptionParser's built-in flags. With them, Ruby 3.3 fails if abbreviations are off (`require_exact`).
      Parser = Class.new(OptionParser) { def add_officious = nil }
      private_constant :Parser

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
        options = parser
        flags = @arguments.take_while { |word| word != "--" }
        rest = options.parse(words(flags, options.top)) + @arguments.drop(flags.size + 1)
        if @help
          @output.puts(parser.help)
          return DONE
        end
        accept(rest)
        act
      rescue OptionParser::ParseError => e
        raise UsageError, "#{e.message.lines.first.chomp}#{hint(e)} `heddle help #{name}` lists the flags."
      end

      # @return [OptionParser]
      def parser
        Parser.new do |options|
          options.banner = "heddle #{name}: #{COMMANDS.fetch(name).text}"
          options.separator("")
          declare(options)
          options.on("-h", "--help", "print this help") { @help = true }
          options.require_exact = true
        end
      end

      private

      def name = self.class::NAME

      # Splits `--name=value` into two words. The OptionParser of Ruby 3.3 does not do this, and does not handle `--`,
      # if abbreviations are off.
      def words(arguments, flags)
        arguments.flat_map do |word|
          name, value = word.split("=", 2)
          flag = flags.search(:long, name.delete_prefix("--")) if value && name.start_with?("--")
          raise OptionParser::NeedlessArgument, word if flag.is_a?(OptionParser::Switch::NoArgument)

          flag ? [name, value] : word
        end
      end

      # @return [String] what ends OptionParser's message: a period or, for an unknown flag, a suggestion
      def hint(error)
        return "." unless error.is_a?(OptionParser::InvalidOption)

        NameSuggestion.hint(error.args.first[/\A[^=]+/], parser.top.long.keys.map { |one| "--#{one}" })
      end

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
