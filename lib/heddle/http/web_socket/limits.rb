# frozen_string_literal: true

module Heddle
  module HTTP
    # WebSockets (RFC 6455); the extension has their code.
    module WebSocket
      # The limits of one WebSocket.
      LIMITS = [
        Limit.new(:websocket_message_limit, :bytes, 262_144, 1,
                  "size of a message from a WebSocket's client; a larger one closes the socket with 1009",
                  4_294_967_296),
        Limit.new(:websocket_fragment_limit, :count, 1_000, 1,
                  "number of frames that a message from a WebSocket's client may have; more close the socket with 1009",
                  4_294_967_295),
        Limit.new(:websocket_output_limit, :bytes, 1_048_576, 1,
                  "size of what may wait for a WebSocket's client that reads slowly; more closes the socket with 1008"),
        Limit.new(:websocket_ping, :seconds, 25, 0,
                  "after how long without a word from its client a WebSocket sends a ping; 0: never"),
        Limit.new(:websocket_timeout, :seconds, 20, 0.001,
                  "how long a WebSocket's client may take to answer a ping or a close frame; then it is cut off"),
        Limit.new(:websocket_deflate, :switch, false, nil,
                  "whether WebSockets compress messages with clients that offer permessage-deflate (RFC 7692); it " \
                  "takes zlib when Heddle is built, see websockets.md")
      ].freeze

      # @param limits [Limits]
      # @return [void]
      # @raise [ArgumentError] when this build can't do what they say
      def self.check_limits(limits)
        return if !limits.websocket_deflate || DEFLATE

        raise ArgumentError, "websocket_deflate needs zlib, which was missing when Heddle was built: install its " \
                             "headers (Debian: zlib1g-dev), then run gem pristine heddle, or leave the option out"
      end
    end
  end
end
