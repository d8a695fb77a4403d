# frozen_string_literal: true

require_relative "cluster_case"
require "support/event_stream_client"
require "support/web_socket_client"

# A deployment removes the gem that a running server has loaded: workers can't load another file of it.
class ClusterDeletedGemTest < Minitest::Test
  include ClusterCase

  ROOT = File.expand_path("../../..", __dir__)
  APP = <<~RUBY
    require "heddle"
    require "socket"

    class Echo
      def on_open(client) = client.subscribe("news")
      def on_message(client, text) = client.write(text)
    end

    run do |env|
      case env["PATH_INFO"]
      when "/socket" then Heddle::WebSocket.upgrade(env, Echo.new)
      when "/events" then Heddle::EventStream.response("news")
      when "/publish" then [200, {}, [Heddle::PubSub.publish("news", "published").to_s]]
      when "/name"
        TCPSocket.open("localhost", env["SERVER_PORT"].to_i).close
        [200, {}, ["connected"]]
      when "/upload" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
      when "/slow"
        sleep 0.2
        [200, {}, ["slow"]]
      when "/error" then raise "by the application"
      else [200, { "x-worker" => $$.to_s }, ["hello"]]
      end
    end
  RUBY

  def setup
    super
    write("config.ru", APP)
    write("config/heddle.rb", "on_booted { File.write(#{path("booted").dump}, '') }\n")
    FileUtils.mkdir_p(path("gem"))
    %w[exe lib].each { |name| FileUtils.cp_r(File.join(ROOT, name), path("gem")) }
    @served = ServedProcess.new(
      [RbConfig.ruby, "-I#{path("gem/lib")}", path("gem/exe/heddle"), "serve", "-w", "2", "--reserve-workers", "0",
       "-p", "0", "-b", "127.0.0.1", "--no-access-log", "--slow-request", "0.1", "--control", "unix:control.sock"],
      folder: @folder, environment: { "RACK_ENV" => "production" }
    )
    wait_until("the master is not ready") { File.exist?(path("booted")) }
    FileUtils.rm_rf(path("gem"))
  end

  def test_server_of_a_deleted_gem_does_all_that_requests_need
    assert_equal "connected", served.get("/name").body
    assert_equal "slow", served.get("/slow").body
    wait_for("slow request of")
    assert_equal "500", served.get("/error").code
    stream = EventStreamClient.new(connect, "/events")
    stream.event # its position
    socket = WebSocketClient.new(connect, "/socket")
    socket.text("echo")

    assert_equal "echo", socket.message
    served.get("/publish")

    assert_equal "published", socket.message
    assert_equal "published", stream.event["data"]
    assert_includes metrics.keys, "heddle_requests_total"
    refute_match(/LoadError|cannot load|NameError/, served.output)
  end

  def test_worker_of_a_deleted_gem_is_replaced
    before = workers
    signal("KILL", before.first)

    assert_equal 1, (workers - before).size
    refute_match(/LoadError|cannot load/, served.output)
  end

  private

  def connect = TCPSocket.new(served.uri.host, served.uri.port)
end
