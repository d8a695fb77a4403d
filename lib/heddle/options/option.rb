# frozen_string_literal: true

require "heddle/error"
require "heddle/name_suggestion"
require "heddle/options/units"

module Heddle
  module Options
    # Raised when an option has an invalid value. The message is for the person who wrote the value.
    # {Server::ConfigurationError} is an alias.
    class ConfigurationError < ArgumentError
      include Heddle::Error
    end

    # The largest value that a limit may have, by its unit: a petabyte, a day, a million.
    MAXIMA = { bytes: 1 << 50, rate: 1 << 50, seconds: 86_400, count: 1_000_000 }.freeze
    private_constant :MAXIMA

    # The definition of one option. Heddle derives from it the option's flag, environment variables, method in a
    # configuration file, validation, help and documentation.
    #
    # @!attribute name [Symbol]
    # @!attribute unit [Symbol] one of {Units::WANTED}
    # @!attribute default [Object, nil] a value, or a Proc that computes it from the values of the options whose default
    #   is not a Proc
    # @!attribute default_words [String, nil] the text that the help shows in place of the default's value
    # @!attribute range [Range, nil] the allowed numbers, with a minimum and a maximum
    # @!attribute choices [Array<Symbol>, nil] allowed words; the value is then a Symbol, or an Array of them
    # @!attribute none [String, nil] the word that stands for an empty list, such as `off`
    # @!attribute short [String, nil] the short flag, such as `-p`
    # @!attribute argument [String, nil] the placeholder of the value in the help, such as `FILE`
    # @!attribute variables [Array<String>] environment variables; Heddle reads the first one that is set
    # @!attribute conditions [Hash{String => Hash}] further variables, each read only if another option has the given
    #   value: `{ "RAILS_MAX_THREADS" => { mode: :thread } }`
    # @!attribute text [String] what the option does: a phrase for the help and the documentation
    # @!attribute reason [String] when an operator changes the option: a sentence
    # @!attribute details [String, nil] further sentences for `heddle help OPTION` and the documentation
    # @!attribute example [String] a line of a configuration file
    # @!attribute limit [Boolean] whether the C extension reads the value; it is then a member of {HTTP::Limits}
    # @!attribute advanced [Boolean] whether `--help` without `--all` leaves the option out
    Option = Data.define(:name, :unit, :default, :default_words, :range, :choices, :none, :short, :argument,
                         :variables, :conditions, :text, :reason, :details, :example, :limit, :advanced) do
      # Defines an option that the C extension reads. Most of these limit how much clients send, or how long they take.
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

      # @return [Boolean] whether this option's value can depend on the values of other options
      def dependent? = default.is_a?(Proc) || conditions.any?

      # @param value [Object] a String as a person wrote it, or the value in a configuration file
      # @param source [String] where the value was written, for error messages
      # @return [Object] the validated value
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

      # @return [String] two sentences: what the option does, and when to change it
      def sentences = "#{text[0].upcase}#{text[1..]}. #{reason}."

      # @return [String] the default as a person would write it
      def default_text = default_words || show(default)

      private

      # Handles the form `protect except: :handoff`, which sets the default list without handoff.
      # @return [Array(Object, Boolean)] the words, and whether to remove them from the default list
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

        raise ConfigurationError, "#{source} must be from #{range.begin} to #{range.end}, but is #{value}"
      end
    end
  end
end
