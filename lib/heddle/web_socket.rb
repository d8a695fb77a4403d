# frozen_string_literal: true

require "heddle/http"
require "heddle/web_socket/server_socket"

module Heddle
  # WebSockets (RFC 6455). A server uses {serve} or {upgrade}, a client {connect}.
  module WebSocket
    autoload :ClientSocket, "heddle/web_socket/client_socket"
    autoload :Error, "heddle/web_socket/client_socket"
    autoload :Fallback, "heddle/web_socket/fallback"
    autoload :FallbackSocket, "heddle/web_socket/fallback"
    autoload :HandshakeError, "heddle/web_socket/client_socket"

    # Header fields of the response to a request that is not a WebSocket request (RFC 9110, section 15.5.22).
    REQUIRED = { "upgrade" => "websocket", "content-type" => "text/plain" }.freeze
    private_constant :REQUIRED

    # Accepts the WebSocket of a request. The handler's methods are called for its events.
    #
    #     Heddle::WebSocket.upgrade(env, Room.new)
    #
    # @param env [Hash] the env of the request
    # @param handler [#on_open, #on_message, #on_drained, #on_shutdown, #on_close] an object with some of these methods.
    #   They are called with a {ServerSocket}, and on_message also with the message
    # @param headers [Hash{String => String}] fields of the response, such as `sec-websocket-protocol`
    # @return [Array] the response that the application must return: 101, or 426 if the request is not a WebSocket
    #   request
    def self.upgrade(env, handler, headers = {})
      Arguments.refuse("the handler", handler, "an object with callbacks such as on_message") if handler.nil?
      unless env["rack.upgrade?"] == :websocket
        return [426, REQUIRED.dup, ["This URL accepts only WebSocket requests: send an upgrade request.\n"]]
      end

      env["rack.upgrade"] = handler
      [101, headers, []]
    end

    # Accepts the WebSocket of a request, and calls the block with it in a separate fiber.
    #
    #     Heddle::WebSocket.serve(env) { |socket| socket.each { |message| socket.write(message) } }
    #
    # @param env (see upgrade)
    # @param headers (see upgrade)
    # @yieldparam socket [ServerSocket] the socket, whose `write` waits while the client reads too slowly. It is closed
    #   when the block ends; if the block raises, with code 1011
    # @return (see upgrade)
    def self.serve(env, headers = {}, &block)
      raise ArgumentError, "Heddle::WebSocket.serve needs a block that takes the socket" unless block

      upgrade(env, BlockHandler.new(&block), headers)
    end

    # Opens a WebSocket to a server. Works inside and outside of an event loop.
    #
    #     Heddle::WebSocket.connect("wss://example.com/feed") { |socket| socket.each { |message| puts message } }
    #
    # @param url [String] ws:// or wss://
    # @param protocols [Array<String>] the offered subprotocols; the server chooses at most one
    # @param headers [Hash{String => String}] more fields of the request, such as authorization or origin
    # @param timeout [Numeric, nil] maximum number of seconds for each of: connecting, the TLS handshake, the response
    # @param write_timeout [Numeric, nil] maximum number of seconds for which the server may read nothing of a message
    # @param ping [Numeric, nil] seconds without data from the server after which a ping is sent. If the same time
    #   passes again without data, the connection counts as lost. Works only while a fiber reads
    # @param message_limit [Integer] maximum size of a message in bytes; a larger one closes the socket with code 1009
    # @param deny_private [Boolean] whether to refuse addresses of this machine and of private networks
    # @param tls [Hash, nil] the arguments of Net::TLS::ClientContext; nil: trust the system's certificates
    # @yieldparam socket [ClientSocket] the socket, which is closed when the block ends
    # @return [ClientSocket, Object] the socket; with a block, the block's value
    # @raise [HandshakeError] if the server does not accept the WebSocket
    # @raise [HTTP::Client::Error] if the connection fails
    # @raise [ArgumentError] if an argument is invalid
    def self.connect(url, protocols: [], headers: {}, timeout: 10, write_timeout: 10, ping: 25, message_limit: 262_144,
                     deny_private: false, tls: nil)
      socket = ClientSocket.new(url, protocols:, headers:, timeout:, write_timeout:, ping:, message_limit:,
                                     deny_private:, tls:)
      return socket unless block_given?

      begin
        yield socket
      ensure
        socket.close
      end
    end
  end
end
