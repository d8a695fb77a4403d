# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Where the value of an option was said.
      #
      # @!attribute kind [Symbol] :flag, :variable, :file, :command (what a command wants otherwise) or :default
      # @!attribute place [String] the flag, the variable, the file and the line, the command
      Source = Data.define(:kind, :place) do
        # @return [String] for a person
        def to_s = kind == :default ? "default" : place
      end

      Source::DEFAULT = Source.new(:default, "default").freeze
    end
  end
end
