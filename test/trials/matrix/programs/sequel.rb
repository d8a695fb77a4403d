# frozen_string_literal: true

require "sequel"

Heddle::Databases.start(fibers: true) # as the server does
database = Sequel.connect(adapter: "postgres", conn_str: ENV.fetch("MATRIX_POSTGRESQL"), max_connections: CLIENTS)
meeting = Meeting.new
got = clients do |number|
  database.transaction do
    meeting.wait
    database.fetch("SELECT pg_backend_pid() AS pid, ? AS number", number).first
  end
end
proves("8 transactions at once, a connection each", got.map { |row| row[:pid] }.uniq.size == CLIENTS)
proves("each task has its own rows", got.map { |row| row[:number] } == [*0...CLIENTS])
