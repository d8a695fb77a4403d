# frozen_string_literal: true

require "opentelemetry/instrumentation/pg"
require "pg"
require_relative "../spans"

Spans.of("OpenTelemetry::Instrumentation::PG", db_statement: :include)
pool = Heddle::Pool.new(max: CLIENTS, timeout: 60) { PG.connect(ENV.fetch("MATRIX_POSTGRESQL")) }
Spans.prove("db.statement") do |number|
  pool.with { |connection| connection.exec("SELECT pg_sleep(0.01), #{number}") }
end
