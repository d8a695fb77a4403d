# frozen_string_literal: true

# Two requests that run at the same time, and lease the only connection one after the other. No request gives it back.

require "active_record"

ActiveRecord::Base.establish_connection("#{ENV.fetch("DATABASE_URL")}&pool=1&checkout_timeout=5")
arrived = 0

run lambda { |_env|
  arrived += 1
  sleep 0.001 until arrived == 2
  answer = begin
    ActiveRecord::Base.lease_connection.select_value("SELECT 42").to_s
  rescue ActiveRecord::ConnectionTimeoutError => e
    e.message
  end
  [200, {}, [answer]]
}
