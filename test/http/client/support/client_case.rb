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

  # In a loop of the selector under test.
  def in_loop(&) = Heddle.run(selector: selector_under_test, &)
end
