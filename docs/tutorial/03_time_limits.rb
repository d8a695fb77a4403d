# frozen_string_literal: true

# Step 3: patience has an end. A client that sends nothing for a while gets a message and is disconnected. The time
# limit strikes only where the task waits, and `ensure` runs as always.
#
#     ruby docs/tutorial/03_time_limits.rb 7000 5       5: seconds of patience

require "heddle"
require "socket"

server = TCPServer.new("127.0.0.1", Integer(ARGV.fetch(0, 7000)))
patience = Float(ARGV.fetch(1, 5))
puts "listening on 127.0.0.1:#{server.local_address.ip_port}"
$stdout.flush

echo = lambda do |client|
  loop do
    line = Heddle.timeout(patience) { client.gets } or break
    client.write(line)
  end
rescue Heddle::TimeoutError
  client.puts("you said nothing for #{patience} s, good bye")
ensure
  client.close
end

begin
  Heddle.run do
    loop do
      client = server.accept
      Heddle.async { echo.call(client) }
    end
  end
rescue Interrupt
  puts "bye"
end
