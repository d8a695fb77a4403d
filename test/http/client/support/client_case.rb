# frozen_string_literal: true

require "heddle"
require "openssl"
require_relative "scripted_server"
require_relative "../../../support/scheduled"

# A test with servers that end with it.
class ClientCase < Minitest::Test
  include Scheduled

  Client = Heddle::HTTP::Client

  # The kernel may give a later test the same port: what is known of this one's servers must not be known of that one's.
  def teardown
    @servers&.each(&:close)
    Client::OriginRegistry.close_idle
    Client::OriginRegistry.drop_unused(0)
  end

  def serve(...)
    server = ScriptedServer.new(...)
    (@servers ||= []) << server
    server
  end

  # Ends each connection after the answer.
  def serve_bytes(bytes) = serve { |socket, _| socket.write(bytes) && socket.close }

  def hello(body = "hello") = "HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"

  # Sends two requests, one in a loop and one in a thread. Each is interrupted when its response was read and another
  # thread uses the statistics and lists of connections.
  def interrupt_during_release(client, server)
    in_loop do
      task = Heddle.async do
        client.stream(:get, "/") { |response| response.body && hold(server) && Heddle.async { task.cancel } }
        sleep
      end
    end
    thread = Thread.new do
      Thread.current.report_on_exception = false
      client.stream(:get, "/") { |response| response.body && hold(server, Thread.current) }
      sleep
    end
    assert_raises(Interruption) { thread.value }
  end

  class Interruption < StandardError
  end

  # Locks them in another thread, and interrupts the given one meanwhile.
  def hold(server, thread = nil)
    origin = Client::OriginRegistry.origins.find { |one| one.to_s == server.url }
    held = Thread::Queue.new
    Thread.new do
      parts = [origin, origin.instance_variable_get(:@sharing)].compact
      locks = parts.map { |part| part.instance_variable_get(:@lock) }
      locks.each(&:lock)
      held.push(true)
      sleep(0.05)
      thread&.raise(Interruption)
      sleep(0.05)
      locks.each(&:unlock)
    end
    held.pop
  end

  # In a loop of the selector under test.
  def in_loop(&) = Heddle.run(selector: selector_under_test, &)
end
