# frozen_string_literal: true

require "mongo"
require_relative "../mongo_stand_in"

Mongo::Logger.logger.level = Logger::FATAL
puts "noted: against a stand-in of ours, as Debian has no MongoDB"
client = Mongo::Client.new([MongoStandIn.new.address], database: "matrix", connect: :direct, max_pool_size: CLIENTS)
got = clients { |number| client[:things].find(number:).first["number"] }
proves("8 queries at once, each with its own answer", got == [*0...CLIENTS])
client = client.with(max_pool_size: 3, wait_queue_timeout: 0.2)
late = clients do |number|
  Heddle.timeout(8) { client[:things].find(number:).first }
rescue Timeout::Error => e
  e.class
end
own = Mongo::Error::ConnectionCheckOutTimeout
proves("tasks that wait for a pool that is too small get its error in time", late.count(own) == CLIENTS - 3)
