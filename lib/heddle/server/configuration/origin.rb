# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Where a configuration came from.
      #
      # @!attribute sources [Hash{Symbol => Source}] of the options that were set
      # @!attribute hooks [Hooks]
      # @!attribute file [String, nil] the configuration file, as a person would name it
      # @!attribute warnings [Array<String>]
      # @!attribute again [#call, nil] loads the configuration once more, from the same sources
      Origin = Data.define(:sources, :hooks, :file, :warnings, :again) do
        def initialize(sources: {}, hooks: Hooks.new, file: nil, warnings: [], again: nil)
          super(sources: sources.freeze, hooks: hooks.freeze, file:, warnings: warnings.freeze, again:)
        end
      end
    end
  end
end
