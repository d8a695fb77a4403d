# frozen_string_literal: true

require "securerandom"

module Heddle
  module Cable
    # The handler of a WebSocket, with a connection of Action Cable above it. Its callbacks, and with them everything of
    # the connection, run one at a time.
    class Socket
      # Calls that may wait for a connection.
      INBOX = 1_000
      WELCOME = ::ActionCable::INTERNAL[:message_types][:welcome]
      RESTART = ::ActionCable::INTERNAL[:disconnect_reasons][:server_restart]
      FAREWELL = HTTP::WebSocket::Codec.frame(
        1, JSON.generate(type: "disconnect", reason: RESTART, reconnect: true), nil
      ).freeze
      private_constant :INBOX, :WELCOME, :RESTART, :FAREWELL

      # @return [Server]
      attr_reader :server
      # @return [String, nil] the subprotocol
      attr_reader :protocol
      # @return [ActiveSupport::TaggedLogging, ActionCable::Server::TaggedLoggerProxy]
      attr_reader :logger
      # @return [ActionCable::Connection::Base]
      attr_reader :connection
      # @return [Topics, nil] nil: the adapter of cable.yml is another one
      attr_reader :topics
      # @return [Hash] of the request
      attr_reader :env

      # @param server [Server]
      # @param env [Hash]
      # @param protocol [String, nil]
      def initialize(server, env, protocol)
        @server = server
        @env = env
        @protocol = protocol
        @client = @topics = @request = @inbox = nil
        @logger = server.new_tagged_logger { request }
        @connection = server.config.connection_class.call.new(server, self)
      end

      # -- what a connection calls ----------------------------------------------------------------------------------

      # @return [ActionDispatch::Request]
      def request
        @request ||= ActionDispatch::Request.new(application? ? ::Rails.application.env_config.merge(env) : env)
      end

      # @param message [Hash]
      # @return [void]
      def transmit(message)
        message = message.merge(sid: SecureRandom.alphanumeric(16)) if extended? && message[:type] == WELCOME
        raw_transmit(ActiveSupport::JSON.encode(message))
      end

      # @param message [String]
      # @return [void]
      def raw_transmit(message) = @client&.write(message)

      # @return [void]
      def close(...) = @client&.close

      # Calls the method soon, in its turn.
      # @return [void]
      def perform_work(receiver, method, *arguments)
        inbox = @inbox ||= []
        return if inbox.any? { |waiting, *| waiting.equal?(receiver) && arguments.empty? } # a timer's tick
        return @client.close(1008, "the connection is too slow") if inbox.size >= INBOX

        inbox << [receiver, method, arguments]
        @client.wake
      end

      # -- what the WebSocket calls ---------------------------------------------------------------------------------

      # @api private
      def on_open(client)
        @client = client
        client.farewell = FAREWELL
        @topics = Topics.new(client, server.config.cable[:channel_prefix], extended?) if server.native_streams?
        server.add_socket(self)
        server.add_connection(@connection)
        client.close(1011) unless run { @connection.handle_open }
      end

      # @api private
      def on_message(_client, message)
        run do
          command = ActiveSupport::JSON.decode(message)
          if topics && command["command"] == "subscribe" then topics.hold { @connection.handle_incoming(command) }
          else @connection.handle_incoming(command)
          end
        end
      end

      # @api private
      def on_publication(_client, publication)
        topics.each_callback(*publication) { |callback, message| run { callback.call(message) } }
      end

      # @api private
      def on_wake(_client)
        while (receiver, method, arguments = @inbox&.shift)
          run { receiver.__send__(method, *arguments) }
        end
      end

      # @api private
      def on_close(_client)
        server.remove_socket(self)
        server.remove_connection(@connection)
        run { @connection.handle_close }
      end

      # -- what the server calls ------------------------------------------------------------------------------------

      # @param frame [String]
      # @return [void]
      def ping(frame) = @client.write_frame(frame)

      # @return [void]
      def end_for_restart = @connection.close(reason: RESTART)

      private

      def extended? = @protocol == EXTENDED_PROTOCOL

      def application? = defined?(::Rails.application) && ::Rails.application

      def run(&) = server.worker.run(@connection, &)
    end
  end
end
