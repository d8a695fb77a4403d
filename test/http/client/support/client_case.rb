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

  # A request whose time limit passes when its response was read and another thread uses the statistics and lists of
  # connections.
  def cancel_during_release(client, server)
    origin = nil
    in_loop do
      Heddle.timeout(0.01) do
        client.stream(:get, "/") do |response|
          response.body
          origin = Client::OriginRegistry.origins.find { |one| one.to_s == server.url }
          hold([origin, origin.instance_variable_get(:@sharing)].compact)
        end
      end
    rescue Heddle::TimeoutError
      nil
    end
  end

  # Locks them in another thread for longer than the time limit.
  def hold(parts)
    held = Thread::Queue.new
    Thread.new do
      locks = parts.map { |part| part.instance_variable_get(:@lock).tap(&:lock) }
      held.push(true)
      sleep(0.1)
      locks.each(&:unlock)
    end
    held.pop
  end

  # In a loop of the selector under test.
  def in_loop(&) = Heddle.run(selector: selector_under_test, &)
end
