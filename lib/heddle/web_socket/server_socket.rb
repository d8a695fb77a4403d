# frozen_string_literal: true

require "heddle/http"
require "heddle/web_socket/messages"

module Heddle
  module WebSocket
    # The server's side of a WebSocket: the first argument of a handler's callbacks, and of the block of
    # {WebSocket.serve}. HTTP::WebSocket::Session has its methods in C.
    class ServerSocket < HTTP::WebSocket::Session
      include Messages

      NO_PATTERNS = "match: is not supported, because topics have no patterns: subscribe to each topic by its name"
      NO_BLOCK = "subscribe takes no block: it sends the messages to the client without calling Ruby. " \
                 "Heddle::PubSub.subscribe calls a block"
      private_constant :NO_PATTERNS, :NO_BLOCK

      # @param timeout [Numeric, nil] seconds
      # @return [String, nil] the next message, in UTF-8 or BINARY; nil: the socket is closed
      # @raise [IO::TimeoutError]
      def read(timeout: nil) = receive(timeout)

      # Sends the messages of a topic to the client, without Ruby code for each. Replaces an earlier subscription to it.
      #
      # @param topic [String, Symbol] at most 1,024 bytes
      # @param since [String, nil] a position, after which it continues; nil: from now on. An event stream has it in
      #   HTTP_LAST_EVENT_ID.
      # @param as [Symbol] :text (binary where a payload is not UTF-8), :binary, or :json: an object with `topic`,
      #   `position` and `data`, or with `reset: true` where messages are lost. With :text and :binary,
      #   `on_reset(client, topic)` is called there.
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

      # @see PubSub.publish
      def publish(topic, data) = PubSub.publish(topic, data)
    end

    # The socket of a block of {WebSocket.serve}: a writer waits while the client reads too slowly.
    #
    # @api private
    class ServedSocket < ServerSocket
      # Bytes of unsent output above which a writer waits, unless the server's limit is lower. The writer continues when
      # a quarter of them is left.
      FULL = 262_144
      private_constant :FULL

      # Waits before the write, too, because another fiber may have filled the output.
      def write(data) = wait_for_room && super && wait_for_room

      private

      # One fiber waits for the connection, and the other ones for that fiber.
      # @return [Boolean] false: the socket was closed meanwhile
      def wait_for_room
        full = [FULL, output_limit].min
        return true if pending <= full

        @draining ||= Thread::Mutex.new
        @draining.synchronize { drain(full / 4) }
      end
    end

    # A handler whose one callback lasts as long as the socket: messages wait for it.
    #
    # @api private
    class BlockHandler
      # @yieldparam socket [ServerSocket]
      def initialize(&block)
        @block = block
      end

      # Called from C: the class of its socket.
      def heddle_socket_class = ServedSocket

      # @param socket [ServerSocket]
      def on_open(socket)
        @block.call(socket)
        socket.close
      end

      # Messages that came after the block has ended.
      def on_message(_socket, _message) = nil
    end
  end
end
