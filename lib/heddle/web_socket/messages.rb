# frozen_string_literal: true

module Heddle
  module WebSocket
    # Iterates over received messages. For classes with a method `read`.
    #
    # @api private
    module Messages
      # Yields each message until the socket is closed.
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
