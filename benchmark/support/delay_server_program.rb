# frozen_string_literal: true

# See DelayServer. It runs on async, whichever contestant talks to it.

require "async"
require "json"
require "socket"
require_relative "delay_server"

def answer(body) = "HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"

ANSWER = answer(Bench::DelayServer::BODY).freeze

# @return [Integer] the port of a new listener
def listen
  server = TCPServer.new("127.0.0.1", 0)
  server.listen(4_096)
  Fiber.schedule do
    loop do
      socket = server.accept
      Fiber.schedule { serve(socket) }
    end
  end
  server.local_address.ip_port
end

def serve(socket)
  while (head = socket.gets("\r\n\r\n"))
    next socket.write(answer(listen.to_s)) if head.start_with?("GET #{Bench::DelayServer::LISTENER} ")

    delay = head[%r{\AGET /([\d.]+)}, 1].to_f
    sleep(delay) if delay.positive?
    socket.write(ANSWER)
  end
rescue SystemCallError
  # The client went away.
ensure
  socket.close
end

# Whoever started it may be killed; then nobody would end it.
parent = Process.ppid
Fiber.set_scheduler(Async::Scheduler.new)
Fiber.schedule do
  sleep(1) while Process.ppid == parent
  exit!(0)
end
Fiber.schedule do
  $stdout.puts(JSON.generate({ port: listen }))
  $stdout.flush
end
