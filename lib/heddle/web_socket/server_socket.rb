# frozen_string_literal: true

require "heddle/http"
require "heddle/web_socket/messages"

module Heddle
  module WebSocket
    # The server's side of a WebSocket, or of an event stream that has a handler: the first argument of the handler's
    # callbacks and of the block of {WebSocket.serve}. Its other methods are in C, in HTTP::WebSocket::Session.
    class ServerSocket < HTTP::WebSocket::Session
      include Messages

      NO_PATTERNS = "match: is not supported, because topics have no patterns: subscribe to each topic by name"
      NO_BLOCK = "subscribe takes no block, because it sends the messages to the client without calling Ruby. " \
                 "To call a block, use Heddle::PubSub.subscribe"
      private_constant :NO_PATTERNS, :NO_BLOCK

      # Waits for a message.
      # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
      # @return [String, nil] the message, in UTF-8 or BINARY; nil: the socket is closed
      # @raise [IO::TimeoutError]
      def read(timeout: nil) = receive(timeout)

      # Sends the messages of a topic to the client, without running Ruby code for each. Replaces an earlier
      # subscription to the same topic.
      #
      # @param topic [String, Symbol] at most 1,024 bytes
      # @param since [String, nil] the position after which to continue; nil: now. For an event stream, pass the
      #   env's HTTP_LAST_EVENT_ID.
      # @param as [Symbol] :text (a message that is not UTF-8 is sent as binary), :binary, or :json: an object with
      #   `topic`, `position` and `data`, or with `reset: true` if messages are lost. With :text and :binary,
      #   `on_reset(client, topic)` is called if messages are lost.
      # @param slow [Symbol] what to do when more bytes wait for the client than the option websocket_output_limit
      #   allows (by default 1 MiB): :close (with code 1008), :coalesce (send the newest message when the client has
      #   caught up), or :drop (omit messages)
      # @param match [nil] not supported, because topics have no patterns; Iodine before 0.8 supported it
      # @param envelope [String, nil] only if `as` is :cable or :extended_cable, which Heddle passes for Action Cable:
      #   the interned JSON text before the data of each message
      # @return [String, false, nil] the position after which the subscription begins; nil: the socket is closed;
      #   false (only with an envelope): messages are lost, and the client was sent a reset
      # @raise [ArgumentError]
      def subscribe(topic, since: nil, as: :text, slow: :close, match: nil, envelope: nil)
        raise ArgumentError, NO_PATTERNS if match
        raise ArgumentError, NO_BLOCK if block_given?

        subscribe_to(Arguments.topic(topic), since, as, slow, envelope)
      end

      # @param topic [String, Symbol]
      # @return [Boolean] whether the socket was subscribed
      def unsubscribe(topic, envelope: nil) = unsubscribe_from(topic.to_s, envelope)

      # @see PubSub.publish
      def publish(topic, data) = PubSub.publish(topic, data)
    end

    # The socket for the block of {WebSocket.serve}. Its `write` waits while the client reads too slowly.
    #
    # @api private
    class ServedSocket < ServerSocket
      # `write` waits when more bytes than this are unsent, or more than the option `websocket_output_limit` if that is
      # lower. It continues when at most a quarter of the lower number is unsent.
      FULL = 262_144
      private_constant :FULL

      # Also waits before writing, because another fiber may have filled the output.
      def write(data) = wait_for_room && super && wait_for_room

      private

      # One fiber waits for the connection; other fibers wait for that fiber.
      # @return [Boolean] false: the socket was closed meanwhile
      def wait_for_room
        full = [FULL, output_limit].min
        return true if pending <= full

        @draining ||= Thread::Mutex.new
        @draining.synchronize { drain(full / 4) }
      end
    end

    # The handler for {WebSocket.serve}. Its callback `on_open` runs the block, which reads messages until the socket
    # ends.
    #
    # @api private
    class BlockHandler
      # @yieldparam socket [ServerSocket]
      def initialize(&block)
        @block = block
      end

      # C code calls this method to get the class of the socket.
      def heddle_socket_class = ServedSocket

      # @param socket [ServerSocket]
      def on_open(socket)
        @block.call(socket)
        socket.close
      end

      # Ignores messages that come after the block has ended.
      def on_message(_socket, _message) = nil
    end
  end
end
