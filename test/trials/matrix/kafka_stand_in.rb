# frozen_string_literal: true

# librdkafka's own stand-in for a cluster, within the process of the client that asks for it: no broker is needed.
module KafkaStandIn
  CONFIG = { "bootstrap.servers": "127.0.0.1:9", "test.mock.num.brokers": 1, log_level: 0 }.freeze

  # @param producer [Rdkafka::Producer] that has asked for the stand-in
  # @return [String] addresses for other clients
  def self.address(producer)
    bindings = Rdkafka::Bindings
    bindings.attach_function(:rd_kafka_handle_mock_cluster, [:pointer], :pointer)
    bindings.attach_function(:rd_kafka_mock_cluster_bootstraps, [:pointer], :string)
    producer.instance_variable_get(:@native_kafka).with_inner do |client|
      bindings.rd_kafka_mock_cluster_bootstraps(bindings.rd_kafka_handle_mock_cluster(client))
    end
  end

  # Eight tasks have 25 messages delivered each, one after the other.
  # @yieldparam payload [String]
  # @yieldreturn [#partition, #offset]
  def self.prove_delivery
    reports = clients { |number| Array.new(25) { |index| yield("#{number}-#{index}") } }.flatten
    places = reports.map { |report| [report.partition, report.offset] }
    proves("200 messages of 8 tasks are delivered, once each", places.uniq.size == 200)
  end
end
