# frozen_string_literal: true

# The server closes all connections while they are idle. Prints as JSON how many there were, and what three queries at
# the same time were answered then.

require_relative "support/access"
require "json"

def open_three
  all = Heddle::Barrier.new(3)
  Heddle.map(1..3) { ACCESS.raw { all.wait } }
end

# Returns when they have ended.
def close_all
  if DRIVER == "pg"
    Observer.ask("SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity " \
                 "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
  else
    others = "FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND COMMAND = 'Sleep'"
    number = nil
    Observer.ask("KILL #{number}") while (number = Observer.ask("SELECT MIN(ID) #{others}"))
  end
end

Heddle.run do
  open_three
  size = Heddle::Databases::Pools.all.first.fetch(:size)
  close_all
  puts JSON.generate(size:, answers: Heddle.map(1..3) { |number| ACCESS.value("SELECT #{number}").to_i })
end
