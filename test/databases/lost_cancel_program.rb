# frozen_string_literal: true

# The first cancel request for each connection has no effect, as one that arrives before the query. Prints as JSON
# whether the next query had the same connection, and whether the server still ran the abandoned one then.

require_relative "support/access"
require "json"

# So that a slow machine discards no connection.
Heddle::Databases.send(:remove_const, :CONFIRM_TIMEOUT)
Heddle::Databases::CONFIRM_TIMEOUT = 60

# Puts aside the first request.
module LostCancel
  def cancel
    return super if @asked_before

    @asked_before = true
    nil
  end
end
PG::Connection.prepend(LostCancel)

Heddle.run do
  first = ACCESS.value("SELECT pg_backend_pid()")
  begin
    Heddle.timeout(0.1) { ACCESS.value("SELECT pg_sleep(30) AS mark_lost") }
  rescue Heddle::TimeoutError
    second = ACCESS.value("SELECT pg_backend_pid()")
  end
  puts JSON.generate(same: first == second, running: Observer.running("mark_lost"))
end
