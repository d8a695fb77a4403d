# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # The source of an option's value.
      #
      # @!attribute kind [Symbol] :flag, :variable, :file, :command (a command's own default), :platform (the platform's
      #   own default) or :default
      # @!attribute place [String] the name of the flag or variable, the file and line, or a description of the default
      # @!attribute places [Array<String>, nil] for a list in the configuration file, the file and line of each element
      Source = Data.define(:kind, :place, :places) do
        def initialize(kind:, place:, places: nil) = super

        # @param index [Integer] the index of an element
        # @return [String] the place where the element was set
        def place_of(index) = places&.at(index) || place

        # @return [String] the source, for messages
        def to_s = kind == :default ? "default" : place
      end

      Source::DEFAULT = Source.new(:default, "default").freeze
    end
  end
end
