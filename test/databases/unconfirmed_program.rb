# frozen_string_literal: true

# The server is asked to cancel and never does, as one that the request cannot reach. Prints as JSON the answer of the
# next query, whether another connection gave it, and seconds from the time limit to the answer.

require_relative "support/access"
require "json"

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
  puts JSON.generate(another: first != second, seconds:, inside: inside.to_i)
end
