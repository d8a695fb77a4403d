# frozen_string_literal: true

require "karafka"
require_relative "../kafka_stand_in"

puts "noted: against librdkafka's own stand-in for a cluster"
cluster = Rdkafka::Config.new(KafkaStandIn::CONFIG).producer
ADDRESS = KafkaStandIn.address(cluster)
GOT = Thread::Queue.new

# Consumes what the tasks have produced, in a thread of karafka's.
class ThingsConsumer < Karafka::BaseConsumer
  def consume = messages.each { |message| GOT << message.raw_payload }
end

# Consumes and produces in one process.
class MatrixApp < Karafka::App
  setup do |config|
    config.kafka = { "bootstrap.servers": ADDRESS, "auto.offset.reset": "earliest" }
    config.client_id = "matrix"
    config.logger = Logger.new(nil)
    config.max_wait_time = 100
  end
  routes.draw { topic("things") { consumer ThingsConsumer } }
end

KafkaStandIn.prove_delivery { |payload| Karafka.producer.produce_sync(topic: "things", payload:) }
payloads = Heddle.run do
  Karafka::Embedded.start
  Array.new(200) { GOT.pop }.tap { Karafka::Embedded.stop }
end
proves("a consumer within the process gets each message once, and ends", payloads.uniq.size == 200)
cluster.close
