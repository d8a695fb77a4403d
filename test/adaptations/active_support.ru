# frozen_string_literal: true

require "active_record"

ActiveRecord::Base.establish_connection("#{ENV.fetch("DATABASE_URL")}&pool=2&checkout_timeout=2")
Item = Class.new(ActiveRecord::Base) { self.table_name = "enumerated" }
state = ActiveSupport::IsolatedExecutionState
first = ->(&block) { Enumerator.new { |all| all << block.call << nil }.next }

run(lambda do |env|
  text = case env["PATH_INFO"]
         when "/state"
           before = state[:who]
           state[:who] = env["QUERY_STRING"]
           sleep 0.02
           "#{before.inspect} #{first.call { state[:who] }} #{Heddle.async { state[:who].inspect }.value}"
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
