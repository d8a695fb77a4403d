# frozen_string_literal: true

# A task is interrupted in the moment in which the server has prepared its statement. Prints as JSON what the statement
# returns the next time, or its error.

require_relative "support/access"
require_relative "support/interruption"
require "json"

# Put before PG::Connection.
module Interrupting
  def prepare(...)
    super
    Interruption.strike
  end
  PG::Connection.prepend(self)
end

def call(statement)
  statement.call.first.values
rescue Sequel::Error, Timeout::Error => e
  e.class.name
end

Heddle.run do
  statement = Sequel::DATABASES.first["SELECT 42"].prepare(:select, :answer)
  Interruption.next = -> { raise Timeout::Error }
  puts JSON.generate(interrupted: call(statement), next: call(statement))
end
