# frozen_string_literal: true

require "heddle"
require "openssl"
require_relative "scripted_server"
require_relative "../../../support/scheduled"

# A test with servers that end with it.
class ClientCase < Minitest::Test
  include Scheduled

  Client = Heddle::HTTP::Client

  def teardown
    Client::Connections.close_idle
    @servers&.each(&:close)
  end

  def serve(...)
    server = ScriptedServer.new(...)
    (@servers ||= []) << server
    server
  end

  # Ends each connection after the answer.
  def serve_bytes(bytes) = serve { |socket, _| socket.write(bytes) && socket.close }

  def hello(body = "hello") = "HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"

  # In a loop of the selector under test.
  def in_loop(&) = Heddle.run(selector: selector_under_test, &)
end
