# frozen_string_literal: true

require "mongoid"
require_relative "../mongo_stand_in"

Mongo::Logger.logger.level = Logger::FATAL
Mongoid.logger.level = Logger::FATAL
puts "noted: against a stand-in of ours, as Debian has no MongoDB"
Mongoid.configure do |config|
  config.isolation_level = :fiber
  options = { connect: :direct, max_pool_size: CLIENTS }
  config.clients.default = { hosts: [MongoStandIn.new.address], database: "matrix", options: }
end

# A document with nothing but its number.
class Thing
  include Mongoid::Document

  field :number, type: Integer
end

got = clients { |number| Thing.where(number:).first.number }
proves("8 queries at once, each with its own document", got == [*0...CLIENTS])
meeting = Meeting.new
seen = clients do |number|
  Mongoid::Threaded.begin_execution(number.to_s)
  meeting.wait
  (0...CLIENTS).count { |other| Mongoid::Threaded.executing?(other.to_s) }
end
proves("a task's state is its own", seen == [1] * CLIENTS)
