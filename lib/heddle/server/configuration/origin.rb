# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Where a configuration came from.
      #
      # @!attribute sources [Hash{Symbol => Source}] the source of each option that was set
      # @!attribute hooks [Hooks] the blocks of the configuration file
      # @!attribute file [String, nil] the path of the configuration file, for messages; nil: no file was read
      # @!attribute warnings [Array<String>] probable mistakes, as text
      # @!attribute again [#call, nil] loads the configuration once more, from the same sources; nil: this is not
      #   possible, because the configuration was not loaded
      Origin = Data.define(:sources, :hooks, :file, :warnings, :again) do
        def initialize(sources: {}, hooks: Hooks.new, file: nil, warnings: [], again: nil)
          super(sources: sources.freeze, hooks: hooks.freeze, file:, warnings: warnings.freeze, again:)
        end
      end
    end
  end
end
