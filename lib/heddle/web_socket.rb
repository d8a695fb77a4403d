# frozen_string_literal: true

require "heddle/http"
require "heddle/web_socket/socket"

module Heddle
  # WebSockets (RFC 6455): of the server, and to other servers.
  module WebSocket
    autoload :Connection, "heddle/web_socket/connection"
    autoload :Error, "heddle/web_socket/connection"
    autoload :Fallback, "heddle/web_socket/fallback"
    autoload :FallbackClient, "heddle/web_socket/fallback"
    autoload :HandshakeFailed, "heddle/web_socket/connection"
    autoload :TokenBucket, "heddle/web_socket/token_bucket"

    # The argument of a handler's callbacks.
    Client = HTTP::WebSocket::Client

    # The socket of one client, as its handler sees it.
    class Client
      NO_PATTERNS = "match: is not supported, because topics have no patterns: subscribe to each topic by its name"
      NO_BLOCK = "subscribe takes no block, because the messages go to the client without Ruby code for each: " \
                 "a block gets them with Heddle::PubSub.subscribe"
      private_constant :NO_PATTERNS, :NO_BLOCK

      # The messages of a topic go to the client, without Ruby code for each. In place of an earlier subscription.
      #
      # @param topic [String, Symbol] at most 1,024 bytes
      # @param since [String, nil] a position, after which it goes on; nil: from now on. An event stream has it in
      #   HTTP_LAST_EVENT_ID.
      # @param as [Symbol] :text (binary where a payload is not UTF-8), :binary, or :json: an object with `topic`,
      #   `position` and `data`, or `reset: true` where messages are lost. With the others `on_reset(client, topic)` is
      #   called then.
      # @param slow [Symbol] the policy for a client for which more than 1 MiB waits: :close (with 1008), :coalesce (it
      #   gets the newest message when it has caught up), or :drop (it misses messages)
      # @return [String, nil] the position that it begins with; nil: the socket is closed
      # @param match [nil] for handlers that were written for Iodine before 0.8: topics have no patterns
      # @raise [ArgumentError]
      def subscribe(topic, since: nil, as: :text, slow: :close, match: nil, envelope: nil)
        raise ArgumentError, NO_PATTERNS if match
        raise ArgumentError, NO_BLOCK if block_given?

        subscribe_to(topic.to_s, since, as, slow, envelope)
      end

      # @param topic [String, Symbol]
      # @return [Boolean] whether it was subscribed
      def unsubscribe(topic, envelope: nil) = unsubscribe_from(topic.to_s, envelope)

      # It was another process's until now.
      # @param topics [Array<Array>, nil] what it is subscribed to
      # @return [void]
      # @api private
      def resume(topics)
        topics&.each { |topic| subscribe_to(*topic) }
        handler.on_resume(self) if handler.respond_to?(:on_resume)
      end

      # @see PubSub.publish
      def publish(topic, data) = PubSub.publish(topic, data)
    end

    # The response to a request that asks for no WebSocket (RFC 9110, section 15.5.22).
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

    # The same for code that serves a socket from its beginning to its end, in a fiber of its own.
    #
    #     Heddle::WebSocket.open(env) { |socket| socket.each { |message| socket.write(message) } }
    #
    # @param env (see upgrade)
    # @param headers (see upgrade)
    # @yieldparam socket [Socket] is closed when the block ends; where it raises, with 1011
    # @return (see upgrade)
    def self.open(env, headers = {}, &block)
      raise ArgumentError, "Heddle::WebSocket.open needs a block: what to do with the socket" unless block

      upgrade(env, Attendant.new(&block), headers)
    end

    # Opens a WebSocket to a server, in a loop, a thread or a plain program.
    #
    #     Heddle::WebSocket.connect("wss://example.com/feed") { |socket| socket.each { |message| puts message } }
    #
    # @param url [String] ws:// or wss://
    # @param protocols [Array<String>] subprotocols, of which the server chooses one
    # @param headers [Hash{String => String}] more fields of the request, such as authorization or origin
    # @param timeout [Numeric, nil] seconds for the connection, the TLS handshake and the answer, each
    # @param write_timeout [Numeric, nil] seconds in which the server must take some of a message
    # @param ping [Numeric, nil] seconds without a word from the server until a ping, and from that until it counts as
    #   gone; while another fiber reads
    # @param message_limit [Integer] bytes of a message; a larger one ends the socket with 1009
    # @param deny_private [Boolean] connects to no address of this machine or of a private network
    # @param tls [Hash, nil] see Net::TLS::ClientContext; nil: the system's certificates
    # @yieldparam socket [Connection] is closed when the block ends
    # @return [Connection, Object] with a block, its value
    # @raise [HandshakeFailed] the server has answered something else
    # @raise [HTTP::Client::Error] there is no connection
    # @raise [ArgumentError]
    def self.connect(url, protocols: [], headers: {}, timeout: 10, write_timeout: 10, ping: 25, message_limit: 262_144,
                     deny_private: false, tls: nil)
      socket = Connection.new(url, protocols:, headers:, timeout:, write_timeout:, ping:, message_limit:, deny_private:,
                                   tls:)
      return socket unless block_given?

      begin
        yield socket
      ensure
        socket.close
      end
    end
  end
end
