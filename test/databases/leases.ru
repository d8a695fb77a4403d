# frozen_string_literal: true

# Two requests, or two messages of WebSockets, are served at the same time. They lease the only connection one after the
# other, and none gives it back.

require "active_record"

ActiveRecord::Base.establish_connection("#{ENV.fetch("DATABASE_URL")}&pool=1&checkout_timeout=30")
arrived = 0

answer = lambda do
  arrived += 1
  sleep 0.001 until arrived == 2
  ActiveRecord::Base.lease_connection.select_value("SELECT 42").to_s
rescue ActiveRecord::ConnectionTimeoutError => e
  e.message
end

socket = Class.new do
  define_method(:on_message) { |client, _| client.write(answer.call) }
end

run lambda { |env|
  if env["rack.upgrade?"] == :websocket
    env["rack.upgrade"] = socket.new
    [101, {}, []]
  else
    [200, {}, [answer.call]]
  end
}
