# frozen_string_literal: true

require "heddle/arguments"
require "heddle/autoloads"
require "heddle/scheduler"
require "heddle/pubsub/route"

module Heddle
  # Publish/subscribe between all processes of a server. Each message of a topic has a position. A subscriber that
  # reconnects continues at its last position, or gets a reset if messages after this position are lost.
  #
  #     position = Heddle::PubSub.publish("room:7", "hello")
  #     Heddle::PubSub.subscribe("room:7", since: position) { |message| puts message.data }
  module PubSub
    Autoloads.add(self, "heddle/pubsub")

    # A message, as a subscriber receives it.
    #
    # @!attribute topic [String]
    # @!attribute data [String, nil] in UTF-8, or in BINARY if it is not UTF-8; nil for a reset
    # @!attribute position [String] "epoch:offset"; with `since:`, a subscriber continues after it
    Message = Data.define(:topic, :data, :position) do
      # @return [Boolean] whether messages before this one are lost, so that the subscriber's state is out of date
      def reset? = data.nil?
    end

    # The messages that this process can send to a reconnecting subscriber. Implemented in C.
    #
    # @api private
    module History
    end

    # A subscriber of a topic. Implemented in C.
    #
    # @api private
    class Subscription
      # @param topic [String] the topic of this subscription
      # @yieldparam message [Message] each message, until the subscription is closed
      # @return [void]
      def each_message(topic)
        while (data, position = take)
          yield Message.new(topic:, data:, position:)
        end
      end
    end

    # Raised if no server or backend accepts a message, or if this process does not belong to a server or backend.
    class UnreachableError < OwnError; end

    class << self
      # Sends the message to all subscribers of the topic, in every process of this server and, with a backend (Redis or
      # PostgreSQL), on every machine. A process that does not belong to a server, such as a job or a console, publishes
      # to the address in {server}.
      #
      # @param topic [String, Symbol] at most 1,024 bytes
      # @param data [String, #to_json] an object that is not a String is encoded as JSON
      # @return [String] the message's position, "epoch:offset"
      # @raise [ArgumentError] if the topic is nil, or the topic or the message is too large
      # @raise [UnreachableError] if no server answers, if too many messages wait for the backend, or if the backend
      #   does not confirm the message within 5 s; the error's text says whether the message may have been published
      def publish(topic, data)
        Route.publish(Arguments.topic(topic), data.is_a?(String) ? data : encode(data))
      end

      # @return [String, Symbol, nil] where this process publishes: "unix:path" of a server's control socket;
      #   "redis://…" or "postgres://…" of a backend; or :process, for topics of this process and its child processes.
      #   nil: the server that this process belongs to. If the process belongs to none, it publishes to the address in
      #   the environment variable HEDDLE_PUBSUB, or else to the server of the current folder
      def server = Route.server

      # @param address [String, :process, nil]
      # @raise [ArgumentError] unless it is :process or nil, or begins with unix: or with the scheme of a backend
      def server=(address)
        Route.server = address
      end

      # The position of the topic's last message. Read it before you read the state that a page shows, and let the page
      # subscribe from this position.
      #
      # @param topic [String, Symbol]
      # @return [String] "epoch:offset"
      # @raise [ArgumentError] if the topic is nil or too large
      # @raise [UnreachableError] if this process belongs to no server, and publishes neither to a backend nor to
      #   :process (see {server})
      def position(topic)
        Route.backend&.follow_here
        History.position(Arguments.topic(topic))
      end

      # Starts a background task that calls the block for each message of the topic, one at a time and in order. The
      # task ends when it is cancelled, when the block raises, or with the scope in which it was started. The scope does
      # not wait for it.
      #
      # @param topic [String, Symbol]
      # @param since [String, nil] the position after which to continue; nil: only new messages
      # @yieldparam message [Message]
      # @return [Task]
      # @raise [NoLoopError] outside a loop
      # @raise [UnreachableError] (see position)
      def subscribe(topic, since: nil, &block)
        raise ArgumentError, "Heddle::PubSub.subscribe needs a block that takes each message" unless block

        scheduler = Concurrency.scheduler!("Heddle::PubSub.subscribe")
        Route.backend&.follow_here
        name = Arguments.topic(topic)
        SubscriberTask.start(scheduler, Subscription.new(scheduler, name, since&.to_s), name, block).handle
      end

      private

      # :stopdoc:

      def encode(data)
        require "json"
        data.to_json
      end
    end
  end
end
