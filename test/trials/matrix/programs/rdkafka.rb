# frozen_string_literal: true

require "rdkafka"
require_relative "../kafka_stand_in"

puts "noted: against librdkafka's own stand-in for a cluster"
producer = Rdkafka::Config.new(KafkaStandIn::CONFIG).producer
KafkaStandIn.prove_delivery do |payload|
  producer.produce(topic: "things", payload:).wait(max_wait_timeout_ms: 10_000)
end

consumer = Rdkafka::Config.new("bootstrap.servers": KafkaStandIn.address(producer), "group.id": "matrix",
                               "auto.offset.reset": "earliest").consumer
consumer.subscribe("things")
got = Heddle.run do
  payloads = []
  payloads.push(*Heddle.offload { consumer.poll(100) }&.payload) until payloads.size == 200
  payloads
end
proves("a consumer gets each message once", got.uniq.size == 200)
proves_others_run("a consumer that waits within `Heddle.offload`") { Heddle.offload { consumer.poll(100) } }
consumer.close
producer.close
