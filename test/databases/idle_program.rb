# frozen_string_literal: true

# The server closes all connections while they are idle. Prints as JSON how many there were, and what three queries at
# the same time were answered then.

require_relative "support/access"
require "json"

def three_at_once(sql) = Heddle.map(1..3) { |number| ACCESS.value(format(sql, number)).to_i }

# Returns when they have ended.
def close_all
  if DRIVER == "pg"
    Observer.ask("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity " \
                 "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
  else
    others = "FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND COMMAND = 'Sleep'"
    number = nil
    Observer.ask("KILL #{number}") while (number = Observer.ask("SELECT MIN(ID) #{others}"))
  end
end

Heddle.run do
  three_at_once(DRIVER == "pg" ? "SELECT %d FROM pg_sleep(0.05)" : "SELECT %d + SLEEP(0.05)")
  size = Heddle::Databases::Pools.all.first.fetch(:size)
  close_all
  puts JSON.generate(size:, answers: three_at_once("SELECT %d"))
end
