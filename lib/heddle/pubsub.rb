# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/scheduler"
require "heddle/pubsub/route"

module Heddle
  # Messages by topic, from any process of a server to all of them, each with a position. A subscriber that reconnects
  # continues at its last position, or gets a reset when messages after it are lost.
  #
  #     position = Heddle::PubSub.publish("room:7", "hello")
  #     Heddle::PubSub.subscribe("room:7", since: position) { |message| puts message.data }
  module PubSub
    Autoloads.add(self, "heddle/pubsub")

    # A message as a subscriber gets it.
    #
    # @!attribute topic [String]
    # @!attribute data [String, nil] in UTF-8, or in BINARY if it is not UTF-8; nil for a reset
    # @!attribute position [String] "epoch:offset": continue after it with `since:`
    Message = Data.define(:topic, :data, :position) do
      # @return [Boolean] whether messages before this one are lost, so that the subscriber's state is out of date
      def reset? = data.nil?
    end

    # The messages that this process can replay, in C.
    #
    # @api private
    module History
    end

    # A subscriber of a topic, in C.
    #
    # @api private
    class Subscription
      # @param topic [String] its topic
      # @yieldparam message [Message] each one, until it is closed
      # @return [void]
      def each_message(topic)
        while (data, position = take)
          yield Message.new(topic:, data:, position:)
        end
      end
    end

    # Raised when no server or backend accepts the message, or when this process has no topics. The error's message has
    # the reason.
    class UnreachableError < OwnError; end

    class << self
      # Gives the message to all subscribers of the topic, in every process of this server, and with a backend on every
      # machine. A process that belongs to no server, such as a job or a console, publishes where {server} says.
      #
      # @param topic [String, Symbol] at most 1,024 bytes
      # @param data [String, #to_json] an object that is not a String is encoded once
      # @return [String] the message's position, "epoch:offset"
      # @raise [ArgumentError] when the topic or the message is too large
      # @raise [UnreachableError] when no server answers; or when the backend has not confirmed the message in 5 s: then
      #   it may have been published
      def publish(topic, data)
        Route.publish(topic.to_s, data.is_a?(String) ? data : encode(data))
      end

      # @return [String, Symbol, nil] where this process publishes: "unix:path" of a server's control socket;
      #   "redis://…" or "postgres://…" of a backend; or :process, for topics of this process and those that it forks.
      #   nil: the server that this process belongs to. If it belongs to none, the environment variable HEDDLE_PUBSUB
      #   names the address; without it, the server in the same folder is used
      def server = Route.server

      # @param address [String, :process, nil]
      # @raise [ArgumentError] when it is neither :process nor begins with unix: or with the scheme of a backend
      def server=(address)
        Route.server = address
      end

      # The position after the topic's last message: read it before the state that a page shows, and let the page
      # continue from there.
      #
      # @param topic [String, Symbol]
      # @return [String] "epoch:offset"
      # @raise [ArgumentError] when the topic is too large
      # @raise [UnreachableError] when this process belongs to no server, and {server} names no backend
      def position(topic)
        Route.backend&.follow_here
        History.position(topic.to_s)
      end

      # Calls the block for each message of the topic, one at a time and in order, in a task of its own. The task ends
      # when it is cancelled, when the block fails, or with the scope that it was started in. The scope does not wait
      # for it.
      #
      # @param topic [String, Symbol]
      # @param since [String, nil] a position, after which it continues; nil: from now on
      # @yieldparam message [Message]
      # @return [Task]
      # @raise [NoLoopError] outside a loop
      # @raise [UnreachableError] (see position)
      def subscribe(topic, since: nil, &block)
        raise ArgumentError, "Heddle::PubSub.subscribe needs a block that takes each message" unless block

        scheduler = Concurrency.scheduler!("Heddle::PubSub.subscribe")
        Route.backend&.follow_here
        SubscriberTask.start(scheduler, Subscription.new(scheduler, topic.to_s, since), topic.to_s, block).handle
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
