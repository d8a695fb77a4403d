# frozen_string_literal: true

module Heddle
  # Finds the right name for a wrong one.
  #
  # @api private
  module NameSuggestion
    class << self
      # @param word [String]
      # @param names [Array<String>]
      # @return [String] ends a sentence, with the nearest name if one is near
      def hint(word, names)
        found = correct(word, names)
        found ? ". Did you mean #{found}?" : "."
      end

      # @param word [String]
      # @param names [Array<String>]
      # @return [String, nil] the nearest name, if one is near
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
