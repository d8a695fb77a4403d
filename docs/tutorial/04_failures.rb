# frozen_string_literal: true

# Step 4: what fails, and who is affected. In a scope the first failure cancels everything else and is raised: nothing
# is lost, nothing half-done continues. A server wants the opposite for its clients: Heddle.supervise lets the others
# continue, and calls on_failure with each failure.
#
#     ruby docs/tutorial/04_failures.rb 7000            say "2 + 3", then "nonsense"

require "heddle"
require "socket"

server = TCPServer.new("127.0.0.1", Integer(ARGV.fetch(0, 7000)))
puts "listening on 127.0.0.1:#{server.local_address.ip_port}"
$stdout.flush

def calculate(client)
  while (line = client.gets)
    left, operator, right = line.split
    client.puts(Integer(left).public_send(operator, Integer(right)))
  end
ensure
  client.close
end

log = lambda do |task, error|
  puts "#{task.name}: #{error.message} (#{error.class})"
  $stdout.flush
end

begin
  Heddle.run do
    Heddle.supervise(on_failure: log) do |clients|
      (1..).each do |number|
        client = server.accept
        clients.async(name: "client #{number}") { calculate(client) }
      end
    end
  end
rescue Interrupt
  puts "bye"
end
