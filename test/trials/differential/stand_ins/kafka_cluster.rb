# frozen_string_literal: true

require "rdkafka"
require_relative "../../matrix/kafka_stand_in"

# librdkafka's own stand-in for a cluster, in the place of the broker that rdkafka's specs expect on port 9092. It makes
# topics, which the specs ask of an administrator; other requests of administrators it does not know.
module KafkaCluster
  BROKER = "127.0.0.1:9092"
  PRODUCER = Rdkafka::Config.new(KafkaStandIn::CONFIG).producer
  ADDRESS = KafkaStandIn.address(PRODUCER)
  Rdkafka::Bindings.attach_function(:rd_kafka_mock_topic_create, %i[pointer string int int], :int)

  # What an administrator's request returns.
  Handle = Struct.new(:response) do
    def wait(**) = self
  end

  # In front of Rdkafka::Config.
  module Address
    def initialize(options = {})
      options = options.merge("bootstrap.servers": ADDRESS) if options[:"bootstrap.servers"] == BROKER
      super
    end
  end

  # In front of Rdkafka::Admin.
  module Topics
    def create_topic(name, partitions, *)
      error = PRODUCER.instance_variable_get(:@native_kafka).with_inner do |client|
        cluster = Rdkafka::Bindings.rd_kafka_handle_mock_cluster(client)
        Rdkafka::Bindings.rd_kafka_mock_topic_create(cluster, name, partitions, 1)
      end
      Handle.new(error)
    end
  end
end

Rdkafka::Config.prepend(KafkaCluster::Address)
Rdkafka::Admin.prepend(KafkaCluster::Topics)
