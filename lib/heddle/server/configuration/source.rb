# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # The source of an option's value.
      #
      # @!attribute kind [Symbol] :flag, :variable, :file, :command (a command's own default), :platform (the platform's
      #   own default) or :default
      # @!attribute place [String] the flag, the variable, the file and the line, the command
      # @!attribute places [Array<String>, nil] of a list in a file: the file and the line of each element
      Source = Data.define(:kind, :place, :places) do
        def initialize(kind:, place:, places: nil) = super

        # @param index [Integer] of an element
        # @return [String] where the element was written
        def place_of(index) = places&.at(index) || place

        # @return [String] for a person
        def to_s = kind == :default ? "default" : place
      end

      Source::DEFAULT = Source.new(:default, "default").freeze
    end
  end
end
