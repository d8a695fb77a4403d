# frozen_string_literal: true

module Heddle
  # Suggests a known name for a misspelled one.
  #
  # @api private
  module NameSuggestion
    class << self
      # @param word [String]
      # @param names [Array<String>]
      # @return [String] the end of an error message: ". Did you mean NAME?", or "." if no name is similar
      def hint(word, names)
        found = correct(word, names)
        found ? ". Did you mean #{found}?" : "."
      end

      # @param word [String]
      # @param names [Array<String>]
      # @return [String, nil] the most similar name; nil if no name is similar
      def correct(word, names)
        require "did_you_mean"
        DidYouMean::SpellChecker.new(dictionary: names).correct(word).min_by do |name|
          DidYouMean::Levenshtein.distance(word, name)
        end
      rescue LoadError
        nil
      end
    end
  end
end
