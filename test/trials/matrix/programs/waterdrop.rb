# frozen_string_literal: true

require "waterdrop"
require_relative "../kafka_stand_in"

puts "noted: against librdkafka's own stand-in for a cluster"
producer = WaterDrop::Producer.new { |config| config.kafka = KafkaStandIn::CONFIG.dup }
KafkaStandIn.prove_delivery { |payload| producer.produce_sync(topic: "things", payload:) }
producer.close
