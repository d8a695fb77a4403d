# frozen_string_literal: true

# Connections that are held while their fibers wait, for their own query or for something else. Prints as JSON what was
# reported of each.

require_relative "support/access"
require "json"
require "stringio"

$stderr = StringIO.new
Heddle::Pool.report_held_connections = true if ENV["REPORT_HELD"]

# Line numbers, by name.
LINES = {} # rubocop:disable Style/MutableConstant

def hold(promise)
  ACCESS.transaction do |ask|
    ask.call("SELECT 1")
    LINES["waits"] = __LINE__ + 1
    promise.value
  end
end

def lease(promise)
  LINES["leased"] = __LINE__ + 1
  ActiveRecord::Base.lease_connection.select_value("SELECT 1")
  promise.value
end

# Waits for what other clients say, in the time that a report takes.
def listen
  ACCESS.raw { |connection| connection.wait_for_notify(3) }
end

# Gives way to other fibers, but never waits. One driver is enough: it keeps a processor busy.
def compute
  long = now + 3
  ACCESS.transaction { |ask| ask.call("SELECT 1") && (sleep 0 until now > long) }
end

Heddle.run do
  promise = Heddle::Promise.new
  holders = Array.new(2) { Heddle.async { hold(promise) } }
  holders << Heddle.async { lease(promise) } if LIBRARY == "active_record"
  busy = [Heddle.async { ACCESS.transaction { |ask| ask.call("SELECT #{SLEEP}(3) AS mark_held") } }]
  busy << Heddle.async { compute } if DRIVER == "trilogy"
  busy << Heddle.async { listen } if DRIVER == "pg"
  busy.each(&:value)
  promise.resolve
  holders.each(&:value)
end
puts JSON.generate(reports: $stderr.string.lines, lines: LINES)
