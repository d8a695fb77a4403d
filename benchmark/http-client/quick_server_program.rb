# frozen_string_literal: true

# See QuickServer.

$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "heddle"
require "heddle/net/sockets"
require "json"
require "socket"
require_relative "../support/delay_server"

ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: #{Bench::DelayServer::BODY.bytesize}\r\n\r\n#{Bench::DelayServer::BODY}".freeze

# Whoever started it may be killed; then nobody would end it.
parent = Process.ppid
Heddle.run do
  sockets = Heddle::Net::Sockets.new(Fiber.scheduler) do |connection|
    head = connection.read_partial(4_096) # a GET comes as one
    delay = head[%r{\AGET /([\d.]+)}, 1].to_f
    sleep(delay) if delay.positive?
    connection.write(ANSWER)
    connection.idle!
  end
  server = TCPServer.new("127.0.0.1", 0)
  sockets.listen(server)
  $stdout.puts(JSON.generate({ port: server.local_address.ip_port }))
  $stdout.flush
  sleep(1) while Process.ppid == parent
  exit!(0)
end
