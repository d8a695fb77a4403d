# frozen_string_literal: true

# The server is asked to cancel and never does, as one that the request cannot reach. Prints as JSON the answer of the
# next query, whether another connection gave it, and seconds from the time limit to the answer. Then a fiber is killed,
# and the next user of its connection gives up before the settling does: the answer of the one after that.

require_relative "support/access"
require "json"
require_relative "../support/fiber_of"

PG::Connection.prepend(Module.new { def cancel = nil })

Heddle.run do
  first = ACCESS.value("SELECT pg_backend_pid()")
  limit = now + 0.1
  begin
    Heddle.timeout(0.1) { ACCESS.value("SELECT pg_sleep(30)") }
  rescue Heddle::TimeoutError
    second = ACCESS.value("SELECT pg_backend_pid()")
  end
  seconds = now - limit
  inside = begin
    Heddle.timeout(0.1) { ACCESS.transaction { |ask| ask.call("SELECT pg_sleep(30)") } }
  rescue Heddle::TimeoutError
    ACCESS.value("SELECT 42")
  end
  victim = Heddle.async { ACCESS.value("SELECT pg_sleep(30) AS mark_unconfirmed") }
  sleep 0.001 until Observer.running("mark_unconfirmed").positive?
  fiber_of(victim).kill
  begin
    Heddle.timeout(0.05) { ACCESS.value("SELECT 1") }
  rescue Heddle::TimeoutError
    nil
  end
  puts JSON.generate(another: first != second, seconds:, inside: inside.to_i, last: ACCESS.value("SELECT 43").to_i)
end
