# frozen_string_literal: true

# Step 1: an echo server. It is written as if there were only one client, and serves all of them at once.
#
#     ruby docs/tutorial/01_echo_server.rb 7000        and in another terminal:  nc localhost 7000

require "heddle"
require "socket"

server = TCPServer.new("127.0.0.1", Integer(ARGV.fetch(0, 7000)))
puts "listening on 127.0.0.1:#{server.local_address.ip_port}"
$stdout.flush

begin
  Heddle.run do # starts an event loop in this thread
    loop do
      client = server.accept # waits; meanwhile the other tasks run
      Heddle.async do # a task for each client
        while (line = client.gets)
          client.write(line)
        end
      ensure
        client.close
      end
    end
  end
rescue Interrupt # Ctrl-C: all tasks are cancelled, their `ensure` is run, then it arrives here
  puts "bye"
end
