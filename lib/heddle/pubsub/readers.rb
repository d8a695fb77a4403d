# frozen_string_literal: true

module Heddle
  module PubSub
    # Subscribes many receivers of one loop to topics. For each topic, one task reads for all receivers.
    #
    # @api private
    class Readers
      Reader = Struct.new(:subscription, :receivers)
      private_constant :Reader

      # @return [Readers] the scheduler's object, made at the first call
      def self.of(scheduler)
        scheduler.instance_variable_get(:@pubsub_readers) ||
          scheduler.instance_variable_set(:@pubsub_readers, new(scheduler))
      end

      def initialize(scheduler)
        @scheduler = scheduler
        @readers = {}
      end

      # @param topic [String]
      # @param receiver [#call] called with each later {Message}; must not wait
      # @return [void]
      def subscribe(topic, receiver)
        @scheduler.without_preemption { (@readers[topic] ||= read(topic)).receivers << receiver }
      end

      # @param topic [String]
      # @param receiver [#call]
      # @return [void]
      def unsubscribe(topic, receiver)
        @scheduler.without_preemption do
          reader = @readers[topic] or next
          reader.receivers.delete(receiver)
          @readers.delete(topic).subscription.close if reader.receivers.empty?
        end
      end

      private

      def read(topic)
        reader = Reader.new(Subscription.new(@scheduler, topic, nil), [])
        Concurrency::Context.of(@scheduler).root.async(name: "topic #{topic}", background: true) do
          reader.subscription.each_message(topic) do |message|
            reader.receivers.dup.each { |receiver| receiver.call(message) }
          end
        ensure
          reader.subscription.close
        end
        reader
      end
    end
  end
end
