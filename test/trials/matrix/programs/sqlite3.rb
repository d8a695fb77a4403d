# frozen_string_literal: true

require "sqlite3"
require "tmpdir"

file = File.join(Dir.mktmpdir, "numbers.sqlite3")
connect = lambda do
  SQLite3::Database.new(file).tap { |database| database.busy_handler_timeout = 30_000 }
end
connect.call.execute_batch("CREATE TABLE numbers (number INTEGER); INSERT INTO numbers VALUES (0)")
seen = clients do
  database = connect.call
  database.transaction(:immediate) do
    number = database.get_first_value("SELECT number FROM numbers")
    sleep 0.01 # the others want to write meanwhile
    database.execute("UPDATE numbers SET number = ?", number + 1)
    number
  end
end
proves("8 tasks write, one at a time; those that wait for the file's lock let the loop run",
       seen.sort == [*0...CLIENTS])

query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT COUNT(*) FROM n"
ticks = Heddle.run do
  ticks = 0
  ticking = Heddle.async(background: true) { loop { sleep(0.001) && ticks += 1 } }
  database = connect.call
  sleep 0.001 until ticks.positive?
  before = ticks
  database.get_first_value(query)
  ticking.cancel
  ticks - before
end
puts "noted: a query blocks the loop" if ticks <= 1 # one when it has ended, as it has used up its slice
