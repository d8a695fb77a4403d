# frozen_string_literal: true

# test: smoke

require_relative "cluster_case"
require "support/web_socket_client"

# WebSockets when workers are replaced.
class ClusterWebSocketTest < Minitest::Test
  include ClusterCase

  # Echoes with its process; says goodbye when its worker ends.
  ECHO = <<~'RUBY'
    require "heddle"

    class Echo
      def on_message(client, message) = client.write("#{$$} #{message}")
      def on_shutdown(client) = client.write("bye")
    end

    run do |env|
      next [200, { "x-worker" => $$.to_s }, []] unless env["PATH_INFO"] == "/echo"

      Heddle::WebSocket.upgrade(env, Echo.new)
    end
  RUBY

  # A worker that ends resets a WebSocket whose client does not answer the closing frame in time, which is 2 s.
  PATIENT = <<~RUBY.freeze
    require #{File.expand_path("../../support/constants", __dir__).inspect}

    limits = Heddle::HTTP::Limits
    Constants.set(limits, :FIXED, limits::FIXED.merge(linger_timeout: #{PATIENCE}).freeze)
  RUBY

  def setup
    super
    write("config.ru", ECHO)
    write("config/heddle.rb", PATIENT)
  end

  def teardown
    @clients&.each { |client| client.io.close }
    super
  end

  def dial
    socket = TCPSocket.new(served.uri.host, served.uri.port)
    WebSocketClient.new(socket, "/echo").tap { |client| (@clients ||= []) << client }
  end

  # @return [Integer] the process that answers
  def worker_of(client)
    client.text("?")
    client.message.to_i
  end

  def test_a_reload_closes_them_with_1012_and_new_workers_serve_those_that_come_back
    serve
    clients = Array.new(6) { dial }
    before = clients.map { |client| worker_of(client) }
    signal("HUP")

    clients.each do |client|
      assert_equal "bye", client.message
      frame = client.closing
      client.close(frame.code)

      assert_equal 1012, frame.code
      assert_predicate client, :ended?
    end
    wait_for("reloaded: 2 workers serve the new code")
    refute_includes before, worker_of(dial)
  end

  def test_the_stop_of_the_server_says_goodbye_and_closes_them_as_going_away
    serve
    clients = Array.new(4) { dial }
    clients.each { |client| worker_of(client) }
    signal("TERM")

    clients.each do |client|
      assert_equal "bye", client.message
      frame = client.closing
      client.close(frame.code)
      client.io.close

      assert_equal 1001, frame.code
    end
    assert_predicate served.wait, :success?
  end
end
