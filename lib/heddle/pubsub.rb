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

    class << self
      # Gives the message to all subscribers of the topic, in every process of this server.
      #
      # @param topic [String, Symbol] at most 1,024 bytes
      # @param data [String, #to_json] what is no String is encoded once
      # @return [String] the message's position, "epoch:offset"
      # @raise [ArgumentError] when the topic or the message is too large
      def publish(topic, data)
        data = encode(data) unless data.is_a?(String)
        "#{History.epoch}:#{History.publish(topic.to_s, data)}"
      end

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

        subscription = Subscription.new(Concurrency.scheduler!("Heddle::PubSub.subscribe"), topic.to_s, since)
        Heddle.async(name: "subscription to #{topic}", background: true) { run(subscription, topic.to_s, block) }
      end

      private

      def run(subscription, topic, block)
        while (data, position = subscription.take)
          block.call(Message.new(topic: topic, data: data, position: position))
        end
      ensure
        subscription.close
      end

      def encode(data)
        require "json"
        data.to_json
      end
    end
  end
end
