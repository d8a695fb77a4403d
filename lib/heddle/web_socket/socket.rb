# frozen_string_literal: true

require "heddle/web_socket/messages"

module Heddle
  module WebSocket
    # A WebSocket that one fiber serves from its beginning to its end. Calls wait, as those of an IO do.
    class Socket
      include Messages

      # Bytes that may wait for the client before a writer does, unless the server's limit is lower. A writer goes on
      # when a quarter of them is left.
      FULL = 262_144
      private_constant :FULL

      # @return [Client]
      attr_reader :client

      # @param client [Client]
      def initialize(client)
        @client = client
        @full = [FULL, client.output_limit].min
        @draining = nil
      end

      # @param timeout [Numeric, nil] seconds
      # @return [String, nil] the next message, in UTF-8 or BINARY; nil: the socket is closed
      # @raise [IO::TimeoutError]
      def read(timeout = nil) = @client.receive(timeout)

      # Sends a message, binary if its encoding is BINARY. Waits while the client reads too slowly.
      # @param data [String]
      # @return [Boolean] whether the socket is open
      def write(data)
        # Before, too: another fiber may have written more than may wait.
        wait_for_room && @client.write(data) && wait_for_room
      end

      # @see Client#close
      def close(...) = @client.close(...)

      # @return [Boolean]
      def open? = @client.open?

      # @see Client#subscribe
      def subscribe(...) = @client.subscribe(...)

      # @see Client#unsubscribe
      def unsubscribe(...) = @client.unsubscribe(...)

      # @return [Integer, nil] how it has ended
      def close_code = @client.close_code

      private

      # One fiber waits for the connection, and the other ones for that fiber.
      # @return [Boolean] false: the socket was closed meanwhile
      def wait_for_room
        return true if @client.pending <= @full

        @draining ||= Thread::Mutex.new
        @draining.synchronize { @client.drain(@full / 4) }
      end
    end

    # @api private
    #
    # A handler whose one callback goes on as long as the socket: messages wait for it.
    class Attendant
      # @yieldparam socket [Socket]
      def initialize(&block)
        @block = block
      end

      # @param client [Client]
      def on_open(client)
        @block.call(Socket.new(client))
        client.close
      end

      # Messages that came after the block has ended.
      def on_message(_client, _message) = nil
    end
  end
end
