# frozen_string_literal: true

require "heddle/scheduler"

module Heddle
  # Messages by topic, from any process of a server to all of them, with a position each: a subscriber that was away
  # goes on where it was, or gets a reset when the messages in between are gone.
  #
  #     position = Heddle::PubSub.publish("room:7", "hello")
  #     Heddle::PubSub.subscribe("room:7", since: position) { |message| puts message.data }
  module PubSub
    autoload :Backend, "heddle/pubsub/backend"
    autoload :Message, "heddle/pubsub/message"
    autoload :Readers, "heddle/pubsub/readers"
    autoload :Reading, "heddle/pubsub/reading"

    # In place of that of Server::Control::Client, which is for a command line.
    ADVICE = "Set Heddle::PubSub.server to its control socket, \"unix:path\", or to a backend's address, which " \
             "HEDDLE_PUBSUB may name, too; or to :process for the subscribers of this process alone"
    private_constant :ADVICE

    # No server or backend takes the message, or this process has no topics; the message says why.
    class UnreachableError < StandardError
      include Heddle::Error
    end

    class << self
      # Gives the message to all subscribers of the topic, in every process of this server, and with a backend on every
      # machine. A process that belongs to no server, such as a job or a console, publishes where {server} says.
      #
      # @param topic [String, Symbol] at most 1,024 bytes
      # @param data [String, #to_json] an object that is not a String is encoded once
      # @return [String] the message's position, "epoch:offset"
      # @raise [ArgumentError] when the topic or the message is too large
      # @raise [UnreachableError] when no server answers; or when the backend has not confirmed the message in 5 s: then
      #   it may be published or not
      def publish(topic, data)
        data = encode(data) unless data.is_a?(String)
        return publish_here(topic, data) if @socket.nil? && (backend || History.open?)

        publish_to_server(topic.to_s, data)
      end

      # Publishes to the backend, or to subscribers of this process, and of those that share its memory, whether there
      # are any or not.
      # @api private
      def publish_here(topic, data)
        backend ? backend.publish(topic.to_s, data) : History.publish(topic.to_s, data)
      end

      # @return [String, Symbol, nil] where this process publishes: "unix:path" of a server's control socket;
      #   "redis://…" or "postgres://…" of a backend; or :process, for topics of this process and those that it forks.
      #   nil: the server that this process belongs to, else what the environment variable HEDDLE_PUBSUB names, else the
      #   control socket of the server in the same folder
      attr_reader :server

      # @param address [String, :process, nil]
      # @raise [ArgumentError] when it is neither :process nor begins with unix: or with the scheme of a backend
      def server=(address)
        socket = backend = nil
        case address
        when nil then nil
        when :process then History.open
        when /\Aunix:/ then socket = -address
        else backend = Backend.new(address.to_s)
        end
        @server, @socket, @named_backend = address, socket, backend
      end

      # The backend that gives messages their offsets; nil: the memory of this server, or of this process.
      # @api private
      # @return [Backend, nil]
      def backend = @named_backend || @backend || (backend_of_environment unless History.open?)

      # @api private
      attr_writer :backend

      # The position after the topic's last message: read it before the state that a page shows, and let the page go on
      # from there.
      #
      # @param topic [String, Symbol]
      # @return [String] "epoch:offset"
      # @raise [ArgumentError] when the topic is too large
      # @raise [UnreachableError] when this process belongs to no server, and {server} names no backend
      def position(topic)
        backend&.follow_here
        History.position(topic.to_s)
      end

      # Calls the block for each message of the topic, one at a time and in order, in a task of its own. The task ends
      # when it is cancelled, when the block fails, and with the scope it was started in, which does not wait for it.
      #
      # @param topic [String, Symbol]
      # @param since [String, nil] a position, after which it goes on; nil: from now on
      # @yieldparam message [Message]
      # @return [Task]
      # @raise [NoLoopError] outside a loop
      # @raise [UnreachableError] (see position)
      def subscribe(topic, since: nil, &block)
        raise ArgumentError, "Heddle::PubSub.subscribe needs a block: what to do with a message" unless block

        scheduler = Concurrency.scheduler!("Heddle::PubSub.subscribe")
        backend&.follow_here
        Reading.start(scheduler, Subscription.new(scheduler, topic.to_s, since), topic.to_s, block)
      end

      private

      def publish_to_server(topic, data)
        control = Server::Control
        socket = @socket || socket_of_environment
        address = socket ? control::Address.parse(socket) : control::Address.new(path: control::Address.default_path)
        control::Client.new(address).publish(topic, data)
      rescue Server::Control::Client::NotRunningError
        raise UnreachableError, "the message was not published: no server answers at #{address}. #{ADVICE}", cause: nil
      rescue Server::Control::Client::TooLargeError => e
        raise ArgumentError, e.message
      rescue Server::Control::Client::NoServerError, Server::Control::Client::DeclinedError => e
        raise UnreachableError, "the message was not published: #{e.message}"
      end

      # Of jobs and other servers.
      def backend_of_environment
        url = ENV.fetch("HEDDLE_PUBSUB", nil)
        return if [nil, "", "memory"].include?(url) || url.start_with?("unix:")

        @backend = Backend.new(url, **{ name: ENV.fetch("HEDDLE_PUBSUB_NAME", nil) }.compact)
      rescue ArgumentError => e
        raise ArgumentError, "HEDDLE_PUBSUB: #{e.message}"
      end

      def socket_of_environment
        address = ENV.fetch("HEDDLE_PUBSUB", nil)
        address if address&.start_with?("unix:")
      end

      def encode(data)
        require "json"
        data.to_json
      end
    end
  end
end
