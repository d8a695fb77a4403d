# frozen_string_literal: true

# test: each version

require_relative "cluster_case"
require "support/web_socket_client"

# Workers in mode ractor: their replacement loses no request.
class ClusterRactorsTest < Minitest::Test
  include ClusterCase

  APP = <<~RUBY
    class App
      def call(_env) = [200, { "x-worker" => $$.to_s }, ["code 1"]]
    end
    run App.new
  RUBY
  private_constant :APP

  def setup
    super
    write("config.ru", APP)
  end

  def teardown
    # It is no child of the test's.
    signal("KILL", @master) if @master && alive?(@master)
    super
  end

  def serve(*) = super("--mode", "ractor", "-t", "2", *)

  def test_no_request_fails_while_workers_are_replaced
    serve
    load = self.load(kept: 0)
    load.wait_for(50)
    write("config.ru", APP.sub("code 1", "code 2"))
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code")
    load.wait_for(50)

    assert_empty load.stop.failures
    assert_equal "code 2", served.get("/").body
  end

  def test_a_reload_asks_web_sockets_to_connect_again
    write("config.ru", <<~RUBY)
      class Quiet
        def on_message(client, message) = nil
      end
      class App
        def call(env)
          env["rack.upgrade"] = Quiet.new if env["rack.upgrade?"]
          [200, { "x-worker" => $$.to_s }, []]
        end
      end
      run App.new
    RUBY
    serve
    client = WebSocketClient.new(TCPSocket.new(served.uri.host, served.uri.port), "/")
    signal("HUP")
    frame = client.closing
    client.close(frame.code)

    assert_equal 1012, frame.code
    wait_for("reloaded: 2 workers serve the new code")
  ensure
    client&.io&.close
  end

  def test_a_reload_to_code_that_ractors_cannot_share_keeps_the_workers
    serve
    before = workers
    write("config.ru", "run ->(_env) { [200, {}, []] }")
    signal("HUP")
    wait_for("and Ruby can't share it (Proc's self is not shareable)")

    assert_equal before.sort, workers.sort
    assert_equal "code 1", served.get("/").body
  end

  def test_a_new_master_takes_over_and_fails_no_request
    serve("--pidfile", "server.pid")
    old = served.pid
    load = self.load(kept: 0)
    load.wait_for(50)
    write("config.ru", APP.sub("code 1", "code 2"))
    signal("USR2")
    wait_until { File.read(path("server.pid")).to_i != old }
    @master = File.read(path("server.pid")).to_i
    wait_until { !alive?(old) }
    load.wait_for(50)

    assert_empty load.stop.failures
    assert_equal "code 2", served.get("/").body
  end
end
