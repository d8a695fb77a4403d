# frozen_string_literal: true

require "heddle/server"

module Heddle
  module CLI
    # Parses the server's flags, one for each option: `--port 3000`, `--port=3000`, `-p 3000`, `-p3000`, `--access-log`,
    # `--no-access-log`. Names can't be abbreviated: a flag that a later version adds must not change the meaning of an
    # existing command line.
    class Flags
      # For each flag, its option and, for a switch, the value that it sets.
      NAMES = Options::ALL.each_with_object({}) do |option, names|
        names[option.flag] = [option, true]
        names[option.flag.sub("--", "--no-")] = [option, false] if option.unit == :switch
        names[option.short] = [option, true] if option.short
      end.freeze
      HELP = %w[--help -h].freeze
      ALL = "--all"
      private_constant :NAMES, :HELP, :ALL

      # @param word [String]
      # @return [Boolean] whether `heddle serve` has this flag
      def self.known?(word) = NAMES.key?(word[/\A(?:--[^=]+|-.)/])

      # @return [Hash{Symbol => String, Boolean, Array<String>}] the values by option, as the user wrote them
      attr_reader :values
      # @return [Array<String>] arguments that are not flags
      attr_reader :rest

      # @param arguments [Array<String>]
      # @raise [UsageError]
      def initialize(arguments)
        @values = {}
        @rest = []
        @help = @all = false
        words = arguments.map { |word| utf8(word) }
        while (word = words.shift)
          next @rest.concat(words.shift(words.size)) if word == "--"

          take(word, words)
        end
        raise UsageError, unknown(ALL) if @all && !@help
      end

      # @return [Boolean] whether the arguments have --help or -h
      def help? = @help

      # @return [Array<String>] the arguments of {Help.for}
      def help_words = @all ? [ALL] : []

      private

      # Treats arguments as UTF-8 in any locale, as configuration files are.
      def utf8(word)
        text = word.dup.force_encoding(Encoding::UTF_8)
        text.valid_encoding? ? text : raise(UsageError, "the argument #{text.inspect} is not UTF-8")
      end

      def take(word, words)
        case word
        when *HELP then @help = true
        when ALL then @all = true
        when /\A--/ then take_long(word, words)
        when /\A-./ then take_short(word, words)
        else @rest << word
        end
      end

      def take_long(word, words)
        name, value = word.split("=", 2)
        option, on = NAMES[name]
        raise UsageError, unknown(name) unless option
        return set(option, value || next_value(name, words)) unless option.unit == :switch
        raise UsageError, "the flag #{name} takes no value" if value

        set(option, on)
      end

      def take_short(word, words)
        name = word[0, 2]
        option, = NAMES[name]
        raise UsageError, unknown(word) unless option

        set(option, word.length > 2 ? word[2..].delete_prefix("=") : next_value(name, words))
      end

      def next_value(name, words)
        value = words.first
        raise UsageError, "the flag #{name} needs a value" if value.nil? || self.class.known?(value)

        words.shift
      end

      def set(option, value)
        return @values[option.name] = value unless option.unit == :list

        (@values[option.name] ||= []) << value
      end

      def unknown(word)
        "there is no flag #{word}#{NameSuggestion.hint(word, NAMES.keys + HELP)} `heddle help serve` lists the flags."
      end
    end
  end
end
