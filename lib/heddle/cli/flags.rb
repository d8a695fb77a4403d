# frozen_string_literal: true

require "optparse"

module Heddle
  module CLI
    # A server's flags, made from its options.
    class Flags
      # @param name [String]
      # @return [Boolean] whether a server has this flag
      def self.known?(name)
        require "heddle/server"
        Server::Options::ALL.any? { |option| [option.short, option.flag].include?(name[/\A[^=]+/]) }
      end

      # @return [Hash{Symbol => String, Boolean, Array<String>}] what was given, as it was written
      attr_reader :values
      # @return [Array<String>] what is no flag
      attr_reader :rest
      # @return [Boolean] whether the help was asked for
      attr_reader :help
      alias help? help

      # @param arguments [Array<String>]
      # @raise [UsageError]
      def initialize(arguments)
        require "heddle/server"
        @values = {}
        @help = false
        @rest = parser.parse(arguments)
      rescue OptionParser::InvalidOption => e
        raise UsageError, "there is no flag #{e.args.first}#{Nearest.hint(e.args.first[/\A[^=]+/], names)} " \
                          "`heddle help serve` lists them."
      rescue OptionParser::MissingArgument => e
        raise UsageError, "the flag #{e.args.first} needs a value"
      rescue OptionParser::NeedlessArgument => e
        raise UsageError, "the flag #{e.args.first[/\A[^=]+/]} takes no value"
      end

      private

      def parser
        OptionParser.new do |parser|
          parser.require_exact = true
          Server::Options::ALL.each { |option| add(parser, option) }
          parser.on("-h", "--help") { @help = true }
        end
      end

      def add(parser, option)
        if option.unit == :switch
          parser.on("--[no-]#{option.flag.delete_prefix("--")}") { |value| @values[option.name] = value }
        elsif option.unit == :list
          parser.on(*[option.short].compact, "#{option.flag} VALUE", String) do |value|
            (@values[option.name] ||= []) << value
          end
        else
          parser.on(*[option.short].compact, "#{option.flag} VALUE", String) { |value| @values[option.name] = value }
        end
      end

      def names
        Server::Options::ALL.flat_map do |option|
          option.unit == :switch ? [option.flag, "--no-#{option.flag.delete_prefix("--")}"] : [option.flag]
        end.push("--help")
      end
    end
  end
end
