# frozen_string_literal: true

# Step 2: many clients at once. Heddle.map calls its block for every item, all at the same time, and returns the results
# in order. The server answers each after a tenth of a second; a hundred answers take a tenth of a second, too.

require "heddle"
require "socket"

server = TCPServer.new("127.0.0.1", 0)
port = server.local_address.ip_port

Heddle.run do
  # A background task doesn't keep the program running: it is cancelled when everything else is done.
  Heddle.async(name: "server", background: true) do
    loop do
      client = server.accept
      Heddle.async(background: true) do
        line = client.gets
        sleep 0.1 # Ruby's own sleep: only this task waits
        client.write(line.upcase)
        client.close
      end
    end
  end

  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  answers = Heddle.map(1..100) do |number|
    TCPSocket.open("127.0.0.1", port) do |socket|
      socket.puts("client #{number}")
      socket.gets.chomp
    end
  end
  took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start

  puts answers.first, answers.last
  puts format("%<count>d answers in %<took>.1f s", count: answers.size, took: took)
end
