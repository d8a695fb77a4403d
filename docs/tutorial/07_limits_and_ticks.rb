# frozen_string_literal: true

# Step 7: how many, and how often. A semaphore lets only so many clients in, the others wait at the door in order; and
# every so often the server says how it is.
#
#     ruby docs/tutorial/07_limits_and_ticks.rb 7000 2  2: clients at once

require "heddle"
require "socket"

server = TCPServer.new("127.0.0.1", Integer(ARGV.fetch(0, 7000)))
seats = Heddle::Semaphore.new(Integer(ARGV.fetch(1, 2)))
puts "listening on 127.0.0.1:#{server.local_address.ip_port}"
$stdout.flush

def serve(client, seats)
  client.puts("#{seats.waiting} wait before you") if seats.free.zero?
  seats.acquire do
    client.puts("come in")
    while (line = client.gets)
      client.write(line)
    end
  end
ensure
  client.close
end

begin
  Heddle.run do
    Heddle.every(0.5, name: "report", background: true) do
      puts "#{seats.limit - seats.free} inside, #{seats.waiting} waiting"
      $stdout.flush
    end
    Heddle.supervise do |clients|
      loop do
        client = server.accept
        clients.async { serve(client, seats) }
      end
    end
  end
rescue Interrupt
  puts "bye"
end
