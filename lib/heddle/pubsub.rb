# frozen_string_literal: true

require "heddle/scheduler"

module Heddle
  # Messages by topic, from any process of a server to all of them, with a position each: a subscriber that was away
  # goes on where it was, or gets a reset when the messages in between are gone.
  #
  #     position = Heddle::PubSub.publish("room:7", "hello")
  #     Heddle::PubSub.subscribe("room:7", since: position) { |message| puts message.data }
  module PubSub
    autoload :Message, "heddle/pubsub/message"
    autoload :Reading, "heddle/pubsub/reading"

    # There is no server to publish to; the message says why.
    class Unreachable < StandardError
    end

    class << self
      # Gives the message to all subscribers of the topic, in every process of this server. A process that is none of
      # the server's, such as a job or a console, publishes over the control socket of the server of its folder.
      #
      # @param topic [String, Symbol] at most 1,024 bytes
      # @param data [String, #to_json] what is no String is encoded once
      # @return [String] the message's position, "epoch:offset"
      # @raise [ArgumentError] when the topic or the message is too large
      # @raise [Unreachable] when this process is none of a server's, runs no loop, and no server answers
      def publish(topic, data)
        data = encode(data) unless data.is_a?(String)
        return publish_here(topic, data) if History.open? || Fiber.scheduler.is_a?(Scheduler)

        publish_to_server(topic.to_s, data)
      end

      # Publishes to subscribers of this process, and of those that share its memory, whether there are any or not.
      # @api private
      def publish_here(topic, data) = History.publish(topic.to_s, data)

      # @return [String] where a process that is none of the server's publishes, "unix:path"; the default is what a
      #   server in the same folder uses
      attr_accessor :server

      # The position after the topic's last message: read it before the state that a page shows, and let the page go on
      # from there.
      #
      # @param topic [String, Symbol]
      # @return [String] "epoch:offset"
      def position(topic) = History.position(topic.to_s)

      # Calls the block for each message of the topic, one at a time and in order, in a task of its own. The task ends
      # when it is cancelled, when the block fails, and with the scope it was started in, which does not wait for it.
      #
      # @param topic [String, Symbol]
      # @param since [String, nil] a position, after which it goes on; nil: from now on
      # @yieldparam message [Message]
      # @return [Task]
      # @raise [NoLoopError] outside a loop
      def subscribe(topic, since: nil, &block)
        raise ArgumentError, "Heddle::PubSub.subscribe needs a block: what to do with a message" unless block

        scheduler = Concurrency.scheduler!("Heddle::PubSub.subscribe")
        Reading.start(scheduler, Subscription.new(scheduler, topic.to_s, since), topic.to_s, block)
      end

      private

      def publish_to_server(topic, data)
        control = Server::Control
        address = server ? control::Address.parse(server) : control::Address.new(path: control::Address.default_path)
        control::Client.new(address).publish(topic, data)
      rescue Server::Control::Client::NoServer, Server::Control::Client::Declined => e
        raise Unreachable, "the message was not published: #{e.message}"
      end

      def encode(data)
        require "json"
        data.to_json
      end
    end
  end
end
