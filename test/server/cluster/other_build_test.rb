# frozen_string_literal: true

# test: nightly

require_relative "cluster_case"
require "support/other_build"
require "open3"
require "support/web_socket_client"

# `heddle restart` between two builds whose shared memory and handoffs have other layouts.
class ClusterOtherBuildTest < Minitest::Test
  include ClusterCase

  HERE = File.expand_path("../../..", __dir__)
  COUNTER = <<~'RUBY'
    require "heddle"

    class Counter
      def self.load(state) = new(state.to_i)
      def initialize(count = 0) = @count = count
      def dump = @count.to_s
      def on_open(client) = client.subscribe("all")
      def on_message(client, _) = client.write("#{@count += 1}")
    end

    run do |env|
      next Heddle::WebSocket.upgrade(env, Counter.new) if env["PATH_INFO"] == "/socket"

      Heddle::PubSub.publish("all", "published") if env["PATH_INFO"] == "/publish"
      [200, { "x-worker" => $$.to_s }, ["hello"]]
    end
  RUBY

  def setup
    super
    write("config.ru", COUNTER)
  end

  def teardown
    @sockets&.each { |client| client.io.close }
    signal("KILL", @master) if @master && alive?(@master)
    super
  end

  { "newer" => -> { [HERE, OtherBuild.folder] }, "older" => -> { [OtherBuild.folder, HERE] } }.each do |age, builds|
    define_method("test_restart_to_a_#{age}_build_fails_no_request_and_asks_web_sockets_to_reconnect") do
      from, to = builds.call
      restart(from, to)
      @sockets.each { |client| assert_equal 1012, client.closing.code, served.output }

      assert_equal "1", count(dial)
      receiving = dial
      count(receiving)
      Net::HTTP.get_response(served.at("/publish"))

      assert_equal "published", receiving.message
      refute_match(/Error|handed off|\.rb:\d+:in|SEGV/, served.output)
    end
  end

  # The control: what would move does so.
  def test_restart_to_the_same_build_moves_web_sockets
    restart(HERE, HERE)

    assert_equal(%w[2 2], @sockets.map { |client| count(client) })
  end

  private

  # Each build as a release behind the link that the server is started by.
  def restart(from, to)
    use(from)
    @served = ServedProcess.new([RbConfig.ruby, path("current/exe/heddle"), "serve", "-w", "2", "-p", "0", "-b",
                                 "127.0.0.1", "--no-access-log", "--pidfile", path("server.pid"), "--control",
                                 "unix:#{path("control.sock")}"], folder: @folder,
                                                                  environment: { "RACK_ENV" => "production" })
    old = served.pid
    @sockets = Array.new(2) { dial }
    @sockets.each { |client| count(client) }
    load = self.load
    load.wait_for(50)
    use(to)
    output, status = Open3.capture2e(RbConfig.ruby, path("current/exe/heddle"), "restart", "--control",
                                     "unix:#{path("control.sock")}", chdir: @folder)
    assert_predicate status, :success?, output + served.output
    wait_until { !alive?(old) }
    @master = File.read(path("server.pid")).to_i
    load.wait_for(50)
    load.stop

    assert_empty load.failures, served.output
  end

  def use(build)
    FileUtils.ln_s(build, path("next"))
    File.rename(path("next"), path("current"))
  end

  def dial
    socket = TCPSocket.new(served.uri.host, served.uri.port)
    WebSocketClient.new(socket, "/socket").tap { |client| (@sockets ||= []) << client }
  end

  def count(client)
    client.text("?")
    client.message
  end
end
