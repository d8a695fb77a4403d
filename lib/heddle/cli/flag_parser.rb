# frozen_string_literal: true

require "optparse"

module Heddle
  module CLI
    # An OptionParser whose flags can't be abbreviated: a flag that a later version adds must not change the meaning of
    # an existing command line.
    class FlagParser < OptionParser
      def initialize(...)
        super
        self.require_exact = true
      end

      # Removes OptionParser's built-in flags. With them, Ruby 3.3 fails if abbreviations are off (`require_exact`).
      def add_officious = nil

      # @param arguments [Array<String>] the arguments after the command's name
      # @param command [String] the command's name
      # @return [Array<String>] the arguments that are not flags
      # @raise [UsageError]
      def read(arguments, command)
        flags = arguments.take_while { |word| word != "--" }
        permute(split(flags)) + arguments.drop(flags.size + 1)
      rescue ParseError => e
        raise UsageError, "#{e.message.lines.first.chomp}#{hint(e)} `heddle help #{command}` lists the flags."
      end

      private

      # Splits `--name=value` into two words. The OptionParser of Ruby 3.3 does not do this, and does not handle `--`,
      # if abbreviations are off.
      def split(arguments)
        arguments.flat_map do |word|
          name, value = word.split("=", 2)
          flag = top.search(:long, name.delete_prefix("--")) if value && name.start_with?("--")
          raise NeedlessArgument, word if flag.is_a?(Switch::NoArgument)

          flag ? [name, value] : word
        end
      end

      # @return [String] what ends OptionParser's message: a period or, for an unknown flag, a suggestion
      def hint(error)
        return "." unless error.is_a?(InvalidOption)

        NameSuggestion.hint(error.args.first[/\A[^=]+/], top.long.keys.map { |one| "--#{one}" })
      end
    end
  end
end
