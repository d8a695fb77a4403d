# frozen_string_literal: true

require "active_record"

ActiveRecord::Base.establish_connection("#{ENV.fetch("DATABASE_URL")}&pool=2&checkout_timeout=30")
Item = Class.new(ActiveRecord::Base) { self.table_name = "enumerated" }
state = ActiveSupport::IsolatedExecutionState
lease = -> { ActiveRecord::Base.lease_connection.select_value("SELECT 7").to_s }
# Fibers of other kinds, each left behind with a connection.
LEFT = {
  "fiber" => -> { Fiber.new { Fiber.yield(lease.call) }.resume },
  "chain" => -> { (Enumerator.new { |all| all << lease.call } + [1]).each_entry.next },
  "lazy" => -> { (1..).lazy.map { lease.call }.eager.each_entry.next },
  "produce" => -> { Enumerator.produce { lease.call }.next },
  "nested" => -> { Enumerator.new { |all| all << Enumerator.new { |inner| inner << lease.call }.next }.next },
  "task" => -> { Heddle.async { Enumerator.new { |all| all << lease.call }.next }.value },
  "transferred" => -> { here = Fiber.current; Fiber.new { here.transfer(lease.call) }.transfer }
}.freeze
first = ->(&block) { Enumerator.new { |all| all << block.call << nil }.next }

run(lambda do |env|
  text = case env["PATH_INFO"]
         when "/state"
           before = state[:who]
           state[:who] = env["QUERY_STRING"]
           sleep 0.02
           "#{before.inspect} #{first.call { state[:who] }} #{Heddle.async { state[:who].inspect }.value}"
         when "/left" then LEFT.fetch(env["QUERY_STRING"]).call
         when "/body"
           next [200, {}, Enumerator.new { |all| all << first.call { lease.call } }]
         when "/lease" then first.call { ActiveRecord::Base.lease_connection.select_value("SELECT 7") }
         when "/transaction"
           seen = nil
           ActiveRecord::Base.transaction do
             ActiveRecord::Base.lease_connection.execute("CREATE TEMPORARY TABLE enumerated (id int) ON COMMIT DROP")
             ActiveRecord::Base.lease_connection.execute("INSERT INTO enumerated VALUES (1)")
             seen = first.call { Item.count }
           end
           seen
         end
  [200, {}, [text.to_s]]
end)
