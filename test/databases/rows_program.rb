# frozen_string_literal: true

# Reads results of mysql2 with offload on. Prints as JSON the rows that each way of reading gives, and how many native
# calls of the driver were offloaded for a small result and for a large one.

require_relative "support/access"
require "json"

ROWS = "SET STATEMENT max_recursive_iterations = 2000 FOR WITH RECURSIVE r(n) AS " \
       "(SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < %<n>d) SELECT n FROM r LIMIT %<n>d"

def ask(rows, **) = ACCESS.raw { |connection| yield connection.query(format(ROWS, n: rows), **) }

def offloaded
  Heddle::Offload.functions.sum { |function| function[:library].start_with?("mysql2") ? function[:offloaded] : 0 }
end

def count_offloaded
  before = offloaded
  yield
  offloaded - before
end

def collect(result, **)
  rows = []
  result.each(**) { |row| rows << row }
  rows
end

def read_closed(statement)
  result = statement.execute
  statement.close
  result.to_a
rescue Mysql2::Error => e
  e.message
end

def ask_streaming_client
  client = Mysql2::Client.new(socket: SERVER, username: "root", as: :array, stream: true, cache_rows: false)
  [1, 2].map { |number| client.query("SELECT #{number}").to_a }
ensure
  client&.close
end

WAYS = {
  block: -> { ask(3) { |result| collect(result) } },
  again: -> { ask(3) { |result| [collect(result), collect(result)].uniq } },
  options: -> { ask(3) { |result| collect(result, as: :array, symbolize_keys: true) } },
  no_block: -> { ask(3, as: :array, &:each) },
  to_a: -> { ask(3, as: :array, &:to_a) },
  break: -> { ask(3, as: :array) { |result| [result.first, result.first, collect(result)] } },
  none: -> { ask(0) { |result| result.to_a.size } },
  not_kept: -> { ask(3, as: :array) { |result| collect(result, cache_rows: false) } },
  statement: -> { ACCESS.raw { |connection| connection.prepare("SELECT 1 UNION SELECT 2").execute(as: :array).to_a } },
  closed_statement: -> { ACCESS.raw { |connection| read_closed(connection.prepare("SELECT 1")) } },
  uncached: -> { ask(3, as: :array, cache_rows: false) { |result| collect(result) } },
  streaming_client: -> { ask_streaming_client },
  stream: -> { ask(3, as: :array, stream: true, cache_rows: false) { |result| collect(result) } },
  waiting: -> { ask(3, as: :array) { |result| result.map { |row| sleep(0.001) && row } } }
}.freeze

Heddle.enable :offload
seen = Heddle.run do
  ways = WAYS.transform_values(&:call)
  { ways:, small: count_offloaded { ask(1_000, &:to_a) }, large: count_offloaded { ask(1_001, &:to_a) } }
end
puts JSON.generate(seen)
