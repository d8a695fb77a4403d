# frozen_string_literal: true

require "heddle/error"
require "heddle/name_suggestion"
require "heddle/options/units"

module Heddle
  module Options
    # An option has an invalid value. The message is for the person who wrote the value. {Server::ConfigurationError} is
    # another name of this class.
    class ConfigurationError < ArgumentError
      include Heddle::Error
    end

    # The largest value that a limit may have, by its unit: a petabyte, a day, a million.
    MAXIMA = { bytes: 1 << 50, rate: 1 << 50, seconds: 86_400, count: 1_000_000 }.freeze
    private_constant :MAXIMA

    # The definition of one option. Its flag, its environment variables, its method in a configuration file, the check
    # of its value, its help and its documentation are all made from this record.
    #
    # @!attribute name [Symbol]
    # @!attribute unit [Symbol] one of {Units::WANTED}
    # @!attribute default [Object, nil] a value, or a Proc that gets the values of all options whose default is not a
    #   Proc
    # @!attribute default_words [String, nil] the help's words for the default, if the value does not explain itself
    # @!attribute range [Range, nil] of allowed numbers
    # @!attribute choices [Array<Symbol>, nil] allowed words; the value is then a Symbol, or an Array of them
    # @!attribute none [String, nil] of a list: the word for an empty list
    # @!attribute short [String, nil] the short flag, such as `-p`
    # @!attribute argument [String, nil] the help's name for the value
    # @!attribute variables [Array<String>] environment variables; the first that is set is used
    # @!attribute conditions [Hash{String => Hash}] variables that count only with a value of another option:
    #   `{ "RAILS_MAX_THREADS" => { mode: :thread } }`
    # @!attribute text [String] what the option does: a phrase for the help and the documentation
    # @!attribute reason [String] when an operator changes the option: a sentence
    # @!attribute details [String, nil] further sentences for the documentation
    # @!attribute example [String] a line of a configuration file
    # @!attribute limit [Boolean] whether the extension reads it, from {HTTP::Limits}
    # @!attribute advanced [Boolean] whether only `--help --all` and the documentation show it
    Option = Data.define(:name, :unit, :default, :default_words, :range, :choices, :none, :short, :argument,
                         :variables, :conditions, :text, :reason, :details, :example, :limit, :advanced) do
      # Makes an option that the extension reads, mostly a limit on what clients send or on the time that they take.
      # @param name [Symbol]
      # @param unit [Symbol] :bytes, :count, :seconds, :rate (bytes a second) or :switch
      # @param default [Integer, Float, Boolean]
      # @param minimum [Integer, Float, nil] nil for a switch
      # @param words [Hash] text, reason and perhaps details
      # @return [Option]
      def self.limit(name, unit, default, minimum, maximum: MAXIMA[unit], **words)
        new(name:, unit:, default:, range: minimum && (minimum..maximum), limit: true, advanced: true, **words)
      end

      def initialize(name:, unit:, text:, reason:, default: nil, default_words: nil, range: nil, choices: nil,
                     none: nil, short: nil, argument: nil, variables: nil, conditions: {}, details: nil, example: nil,
                     limit: false, advanced: false)
        variables ||= ["HEDDLE_#{name.upcase}"]
        argument ||= Units::ARGUMENTS.fetch(unit, "WORD")
        example ||= "#{name} #{Units.literal(unit, default)}"
        super
      end

      # @return [String] the long flag
      def flag = "--#{name.to_s.tr("_", "-")}"

      # @return [Boolean] whether its value may depend on other options'
      def dependent? = default.is_a?(Proc) || conditions.any?

      # @param value [Object] a String as a person wrote it, or the value in a configuration file
      # @param source [String] where it was written, for the message
      # @return [Object] the value
      # @raise [ConfigurationError]
      def parse(value, source)
        value, excluded = split_exception(value) if choices && unit == :list
        read = none?(value) ? [] : Units.read(unit, value)
        chosen = choices && read ? choose(read) : read
        if chosen.nil?
          shown = value.is_a?(Array) && value.one? ? value.first : value
          raise ConfigurationError, "#{source} must be #{wanted}, but is #{shown.inspect}#{suggestion(read)}"
        end
        check(excluded ? default - chosen : chosen, value, source)
      end

      # @param value [Object]
      # @return [String] as a person would write it
      def show(value)
        return none.to_s if value.nil? || value == []

        Units.text(unit, value)
      end

      # @return [String] what it does, and when to change it: two sentences
      def sentences = "#{text[0].upcase}#{text[1..]}. #{reason}."

      # @return [String] the default as a person would write it
      def default_text = default_words || show(default)

      private

      # `protect except: :handoff` sets the default without handoff.
      # @return [Array(Object, Boolean)] the words, and whether they are excluded from the default
      def split_exception(value)
        only = Array(value).first
        only.is_a?(Hash) && only.keys == [:except] ? [Array(only[:except]), true] : [value, false]
      end

      def wanted
        return Units::WANTED.fetch(unit) unless choices

        words = [*choices, *none].map(&:to_s)
        all = "#{words[..-2].join(", ")} or #{words.last}"
        unit == :list ? "one or more of #{all}, separated by commas" : all
      end

      def none?(value) = none && Array(value).map(&:to_s) == [none]

      def choose(read)
        chosen = Array(read).map { |word| choices.find { |choice| choice.to_s == word } }
        return if chosen.include?(nil)

        unit == :list ? chosen.uniq : chosen.first
      end

      def suggestion(read)
        words = [*choices, *none].map(&:to_s)
        wrong = Array(read).find { |word| !words.include?(word) }
        found = wrong && choices && NameSuggestion.correct(wrong, words)
        ". Did you mean #{found}?" if found
      end

      def check(read, value, source)
        return read if range.nil? || read == :auto || range.cover?(read)

        bounds = range.end ? "from #{range.begin} to #{range.end}" : "at least #{range.begin}"
        raise ConfigurationError, "#{source} must be #{bounds}, but is #{value}"
      end
    end
  end
end
