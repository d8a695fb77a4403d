# frozen_string_literal: true

module Heddle
  module WebSocket
    # Iterates over messages with the method `read`, which both sides of a socket have.
    #
    # @api private
    module Messages
      # @yieldparam message [String]
      # @return [void]
      def each
        return to_enum unless block_given?

        while (message = read)
          yield message
        end
      end
    end
  end
end
