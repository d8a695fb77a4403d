# frozen_string_literal: true

require "securerandom"

module Heddle
  module Cable
    # The handler of a WebSocket that carries an Action Cable connection. Its callbacks run one at a time, and so does
    # all code of the connection.
    class Socket
      # Maximum number of calls that wait in a connection's queue.
      MAX_INBOX = 1_000
      WELCOME = ::ActionCable::INTERNAL[:message_types][:welcome]
      RESTART = ::ActionCable::INTERNAL[:disconnect_reasons][:server_restart]
      FAREWELL = HTTP::WebSocket::Codec.frame(
        1, JSON.generate(type: "disconnect", reason: RESTART, reconnect: true), nil
      ).freeze
      # The version of {dump}'s format. Increase it with every change of the format.
      STATE_VERSION = 1
      private_constant :MAX_INBOX, :WELCOME, :RESTART, :FAREWELL, :STATE_VERSION

      # @return [Server]
      attr_reader :server
      # @return [String, nil] the subprotocol
      attr_reader :protocol
      # @return [ActiveSupport::TaggedLogging, ActionCable::Server::TaggedLoggerProxy]
      attr_reader :logger
      # @return [ActionCable::Connection::Base]
      attr_reader :connection
      # @return [Topics, nil] nil: the WebSocket is not open yet, or cable.yml configures another adapter
      attr_reader :topics

      # Makes a socket that continues a connection of another process.
      # @param state [String] see {dump}
      # @return [Socket]
      def self.load(state)
        version, protocol, env, (identifiers, subscriptions) =
          Marshal.load(state) # rubocop:disable Security/MarshalLoad -- ours
        raise ArgumentError, "the connection's state is from another version of Heddle" unless version == STATE_VERSION

        new(::ActionCable.server, env, protocol).tap { |socket| socket.restore(identifiers, subscriptions) }
      end

      # @param server [Server]
      # @param env [Hash]
      # @param protocol [String, nil]
      def initialize(server, env, protocol)
        @server = server
        @env = env
        @protocol = protocol
        @client = @topics = @request = @inbox = @strings = @thread_calls = nil
        @ended = false
        @logger = server.new_tagged_logger { request }
        @connection = server.config.connection_class.call.new(server, self)
      end

      # @return [Hash] the Rack env of the request; after the opening, only its entries with String values
      def env = @env ||= Marshal.load(@strings) # rubocop:disable Security/MarshalLoad -- ours

      # -- calls of a connection ------------------------------------------------------------------------------------

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

      # Calls the method soon, in the loop. The calls of a connection run in order. Any thread may call this method.
      # Drops the call of a timer if its previous call still waits. Closes the connection when too many calls wait.
      # @return [void]
      def perform_work(receiver, method, *arguments)
        return @thread_calls.push { perform_work(receiver, method, *arguments) } if @thread_calls&.needed?
        return if @ended

        inbox = @inbox ||= []
        return if timer_call?(receiver, arguments) && inbox.any? { |waiting, *| waiting.equal?(receiver) }
        return @client.close(1008, "too many calls wait for the connection") if inbox.size >= MAX_INBOX

        inbox << [receiver, method, arguments]
        @client.wake
      end

      # -- calls of the WebSocket -----------------------------------------------------------------------------------

      # @api private
      def on_open(client)
        attach(client)
        opened = run { @connection.handle_open }
        @strings = Marshal.dump(env.select { |name, value| name.is_a?(String) && value.instance_of?(String) })
        forget_request
        client.close(1011) unless opened
      end

      # @api private
      def on_message(client, message)
        return reject(client, 1008, "too many commands") unless commands.take?

        command = Commands.read(message) or return reject(client, 1007, "a message must be a JSON object")
        run { run_command(command) }
      end

      # @api private
      def on_publication(_client, publication)
        topics.each_callback(*publication) { |callback, message| run { callback.call(message) } }
        perform_waiting # otherwise more publications could come before on_wake
      end

      # @api private
      def on_wake(_client) = perform_waiting

      # Called when messages are lost. The client does not learn it: Action Cable's protocol has no message for this.
      # @api private
      def on_reset(_client, topic)
        logger.warn("broadcasts of #{topic} were lost: too many came at once, or the pub/sub backend lost them")
      end

      # @api private
      def on_close(_client)
        server.remove_socket(self)
        server.remove_connection(@connection)
        channels = subscriptions
        channels.each_value { |channel| leave(channel) }
        channels.clear
        run { @connection.handle_close }
      ensure
        @ended = true
        @inbox = nil
      end

      # -- calls of the server --------------------------------------------------------------------------------------

      # @param frame [String]
      # @return [void]
      def ping(frame) = @client.write_frame(frame)

      # Disconnects the client, which then reconnects.
      # @return [void]
      def end_for_restart = @connection.close(reason: RESTART)

      # @return [String, nil] the state from which {load} makes a socket in another process; nil: the socket can't move
      def dump
        return unless topics && @strings && (@inbox.nil? || @inbox.empty?)

        state = SocketState.of(@connection)
        state && Marshal.dump([STATE_VERSION, @protocol, env, state]).tap { forget_request }
      end

      # @api private
      def restore(identifiers, subscriptions)
        @strings = Marshal.dump(env)
        @subscriptions = subscriptions
        server.worker.work(@connection) { SocketState.identify(@connection, identifiers) }
        forget_request
      end

      # @api private
      def on_resume(client)
        attach(client)
        subscriptions = remove_instance_variable(:@subscriptions)
        topics.resume { SocketState.subscribe(@connection, topics, subscriptions) }
      end

      private

      def attach(client)
        @client = client
        client.farewell = FAREWELL
        @topics = Topics.new(client, server.config.cable[:channel_prefix], extended?) if server.native_streams?
        @thread_calls = Concurrency::Context.of(Fiber.current_scheduler).thread_calls
        server.add_socket(self)
        server.add_connection(@connection)
      end

      # Action Cable's timers call a block without arguments.
      def timer_call?(receiver, arguments) = arguments.empty? && receiver.is_a?(Proc)

      def perform_waiting
        while (receiver, method, arguments = @inbox&.shift)
          run { receiver.__send__(method, *arguments) }
        end
      end

      # Ends a channel. If its `unsubscribed` callback fails, logs the error, and stops its streams and timers.
      def leave(channel)
        run { channel.unsubscribe_from_channel } || run do
          channel.stop_all_streams
          channel.__send__(:stop_periodic_timers)
        end
      end

      def commands = @commands ||= Commands.new

      def reject(client, code, reason)
        logger.warn("Closing a client's connection: #{reason}")
        client.close(code, reason)
      end

      # Runs a command. Logs a client's mistake in one line, not as an error of the application.
      def run_command(command)
        handle(command) unless extended? && handle_extension(command)
      rescue StandardError => e
        mistake = Commands.mistake(command, e) or raise
        logger.warn("Ignoring a client's command: #{mistake}")
      end

      def handle(command)
        return @connection.handle_incoming(command) unless command["command"] == "subscribe"
        return reject_subscription(command, "its connection has #{Commands::MAX_SUBSCRIPTIONS} others already") if
          subscriptions.size >= Commands::MAX_SUBSCRIPTIONS
        return reject_subscription(command, "its identifier has more than #{Commands::IDENTIFIER_LIMIT} bytes") if
          command["identifier"].to_s.bytesize > Commands::IDENTIFIER_LIMIT

        return @connection.handle_incoming(command) unless topics

        topics.hold(history_of(command)) { @connection.handle_incoming(command) }
      end

      def subscriptions = @connection.subscriptions.__send__(:subscriptions)

      def reject_subscription(command, reason)
        logger.warn("Rejecting a client's subscription: #{reason}")
        transmit({ type: ::ActionCable::INTERNAL[:message_types][:rejection], identifier: command["identifier"] })
      end

      # @return [Boolean] whether it was a command of AnyCable's extended protocol
      def handle_extension(command)
        case command["command"]
        when "pong" then true
        when "history"
          channel = @connection.subscriptions.__send__(:find, command)
          streams = channel.__send__(:streams).values.grep(Topics::Stream)
          topics.replay(streams, history_of(command) || History.new({}))
          true
        else false
        end
      end

      def history_of(command)
        history = command["history"] if extended?
        return unless history.is_a?(Hash)

        identifier = command["identifier"]
        History.new(history, refused: !commands.take_replay?) do |type|
          transmit({ type:, identifier: }) if @connection.subscriptions.identifiers.include?(identifier)
        end
      end

      # Frees the env and the request. {#env} restores the env from its Strings; most connections never need it again.
      def forget_request = @env = @request = nil

      def extended? = @protocol == EXTENDED_PROTOCOL

      def application? = defined?(::Rails.application) && ::Rails.application

      def run(&)
        server.worker.run(@connection, &)
      ensure
        forget_request if @strings
      end
    end
  end
end
