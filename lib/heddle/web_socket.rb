# frozen_string_literal: true

require "heddle/http"
require "heddle/web_socket/server_socket"

module Heddle
  # WebSockets (RFC 6455): {serve} and {upgrade} on the server's side, {connect} on the client's.
  module WebSocket
    autoload :ClientSocket, "heddle/web_socket/client_socket"
    autoload :Error, "heddle/web_socket/client_socket"
    autoload :Fallback, "heddle/web_socket/fallback"
    autoload :FallbackSocket, "heddle/web_socket/fallback"
    autoload :HandshakeError, "heddle/web_socket/client_socket"
    autoload :TokenBucket, "heddle/web_socket/token_bucket"

    # The response to a request that asks for no WebSocket (RFC 9110, section 15.5.22).
    REQUIRED = { "upgrade" => "websocket", "content-type" => "text/plain" }.freeze
    private_constant :REQUIRED

    # Makes a WebSocket of a request.
    #
    #     Heddle::WebSocket.upgrade(env, Room.new)
    #
    # @param env [Hash] of the request
    # @param handler [#on_open, #on_message, #on_drained, #on_shutdown, #on_close] an object with some of these methods,
    #   which are called with a {ServerSocket}; on_message with the message, too
    # @param headers [Hash{String => String}] fields of the response, such as `sec-websocket-protocol`
    # @return [Array] the response for the application to return: 101, or 426 if the client asks for no WebSocket
    def self.upgrade(env, handler, headers = {})
      unless env["rack.upgrade?"] == :websocket
        return [426, REQUIRED.dup, ["This address speaks WebSocket: ask for an upgrade.\n"]]
      end

      env["rack.upgrade"] = handler
      [101, headers, []]
    end

    # Serves a socket from its beginning to its end, in a fiber of its own.
    #
    #     Heddle::WebSocket.serve(env) { |socket| socket.each { |message| socket.write(message) } }
    #
    # @param env (see upgrade)
    # @param headers (see upgrade)
    # @yieldparam socket [ServerSocket] whose `write` waits while the client reads too slowly. It is closed when the
    #   block ends; where it raises, with 1011
    # @return (see upgrade)
    def self.serve(env, headers = {}, &block)
      raise ArgumentError, "Heddle::WebSocket.serve needs a block that takes the socket" unless block

      upgrade(env, BlockHandler.new(&block), headers)
    end

    # Opens a WebSocket to a server, in a loop, a thread or a plain program.
    #
    #     Heddle::WebSocket.connect("wss://example.com/feed") { |socket| socket.each { |message| puts message } }
    #
    # @param url [String] ws:// or wss://
    # @param protocols [Array<String>] subprotocols, of which the server chooses one
    # @param headers [Hash{String => String}] more fields of the request, such as authorization or origin
    # @param timeout [Numeric, nil] seconds for the connection, the TLS handshake and the response, each
    # @param write_timeout [Numeric, nil] seconds in which the server must take some of a message
    # @param ping [Numeric, nil] seconds of silence until a ping is sent, and from the ping until the server counts as
    #   gone; only while a fiber reads
    # @param message_limit [Integer] bytes of a message; a larger one ends the socket with 1009
    # @param deny_private [Boolean] connects to no address of this machine or of a private network
    # @param tls [Hash, nil] see Net::TLS::ClientContext; nil: the system's certificates
    # @yieldparam socket [ClientSocket] the socket, closed when the block ends
    # @return [ClientSocket, Object] with a block, its value
    # @raise [HandshakeError] if the server has not accepted the WebSocket
    # @raise [HTTP::Client::Error] if the connection fails
    # @raise [ArgumentError]
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
