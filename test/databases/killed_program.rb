# frozen_string_literal: true

# A fiber is killed while the server runs its query of half a minute, outside of a transaction and within one. Prints as
# JSON for both: the next query's answer, or error, seconds from the kill until then, and seconds until the server ran
# the abandoned query no more; and what {#kill_between} has found.

require_relative "support/access"
require "json"
require_relative "../support/fiber_of"

def kill_amid(place)
  mark = "mark_#{place}_#{Process.pid}"
  task = Heddle.async { yield "SELECT #{SLEEP}(30) AS #{mark}" }
  sleep 0.001 until Observer.running(mark).positive?
  killed = now
  fiber_of(task).kill
  answer = begin
    ACCESS.value("SELECT 42").to_i
  rescue StandardError => e
    e.inspect
  end
  answered = now
  sleep 0.002 while Observer.running(mark).positive?
  { answer:, next: (answered - killed).round(4), gone: (now - killed).round(4) }
end

# @return [Hash] what happens when a fiber is killed that waits for something else within its transaction: how many rows
#   were committed, and seconds until another connection could insert the same row
def kill_between
  schema = "killed_#{Process.pid}"
  Observer.order("CREATE SCHEMA #{schema}")
  Observer.order("CREATE TABLE #{schema}.numbers (number INT PRIMARY KEY)")
  row = "INSERT INTO #{schema}.numbers VALUES (1) RETURNING 1"
  asleep = false
  task = Heddle.async do
    ACCESS.transaction { |ask| ask.call(row) && (asleep = true) && sleep }
  end
  sleep 0.001 until asleep
  killed = now
  fiber_of(task).kill
  rows = Integer(ACCESS.value("SELECT COUNT(*) FROM #{schema}.numbers"))
  Observer.ask(row) if rows.zero?
  { rows:, next: (now - killed).round(4) }
end

seen = Heddle.run do
  ACCESS.value("SELECT 1")
  { query: kill_amid("query") { |sql| ACCESS.value(sql) },
    transaction: kill_amid("transaction") { |sql| ACCESS.transaction { |ask| ask.call(sql) } },
    between: kill_between }
end
puts JSON.generate(seen)
