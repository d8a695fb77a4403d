# frozen_string_literal: true

require "heddle/http"

module Heddle
  # WebSockets (RFC 6455) of the server.
  module WebSocket
    # What the callbacks of a handler are called with.
    Client = HTTP::WebSocket::Client
    # What a request gets that asks for no WebSocket (RFC 9110, section 15.5.22).
    REQUIRED = { "upgrade" => "websocket", "content-type" => "text/plain" }.freeze
    private_constant :REQUIRED

    # Makes a WebSocket of a request.
    #
    #     Heddle::WebSocket.upgrade(env, Room.new)
    #
    # @param env [Hash] of the request
    # @param handler [#on_open, #on_message, #on_drained, #on_shutdown, #on_close] has some of these methods, which are
    #   called with a {Client}; on_message with the message, too
    # @param headers [Hash{String => String}] fields of the answer, such as `sec-websocket-protocol`
    # @return [Array] what the application has to return: 101, or 426 where the client asks for no WebSocket
    def self.upgrade(env, handler, headers = {})
      unless env["rack.upgrade?"] == :websocket
        return [426, REQUIRED.dup, ["This address speaks WebSocket: ask for an upgrade.\n"]]
      end

      env["rack.upgrade"] = handler
      [101, headers, []]
    end
  end
end
