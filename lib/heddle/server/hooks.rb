# frozen_string_literal: true

module Heddle
  class Server
    # The blocks of a configuration file that run at the steps of a process's life.
    class Hooks
      # Each name with when its blocks are called.
      NAMES = {}.freeze

      def initialize
        @blocks = Hash.new { |_, _| [].freeze }
      end

      # @param name [Symbol] one of {NAMES}
      # @yield when it is time
      # @return [void]
      def add(name, &block)
        @blocks[name] = [*@blocks[name], block].freeze
      end

      # @param name [Symbol]
      # @return [Array<Proc>] in the order in which they were added
      def [](name) = @blocks[name]

      # @return [Array<Symbol>] the names that have blocks
      def names = @blocks.keys

      def freeze
        @blocks.freeze
        super
      end
    end
  end
end
