# frozen_string_literal: true

require_relative "support/database_programs"
require "support/served_process"
require "support/web_socket_client"

# Connections that requests and WebSockets of an application without Rails lease permanently.
class LeasesTest < Minitest::Test
  include DatabasePrograms

  APPLICATION = File.expand_path("leases.ru", __dir__)

  def serve
    need_gem "activerecord"
    url = address("pg")
    served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", APPLICATION, "--port", "0"],
                               environment: { "DATABASE_URL" => url })
    yield served
  ensure
    served&.stop
  end

  def test_a_permanent_lease_ends_with_its_request
    serve do |served|
      answers = Array.new(2) { Thread.new { served.get("/").body } }.map(&:value)

      assert_equal %w[42 42], answers
    end
  end

  def test_a_permanent_lease_ends_with_the_callback_of_its_web_socket
    serve do |served|
      sockets = Array.new(2) { WebSocketClient.new(TCPSocket.new("127.0.0.1", served.at("/").port)) }
      sockets.each { |socket| socket.text("ask") }

      assert_equal(%w[42 42], sockets.map { |socket| socket.read.payload })
    ensure
      sockets&.each { |socket| socket.io.close }
    end
  end
end
