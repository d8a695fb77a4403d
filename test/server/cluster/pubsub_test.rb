# frozen_string_literal: true

require_relative "cluster_case"

# Messages reach the subscribers of all workers; the history outlives workers and masters.
class ClusterPubSubTest < Minitest::Test
  include ClusterCase

  # /take waits for one message after the position that is asked for, or the next one; /die ends its worker.
  PUBSUB_APP = <<~'RUBY'
    require "heddle"

    run do |env|
      query = URI.decode_www_form(env["QUERY_STRING"]).to_h
      case env["PATH_INFO"]
      when "/publish" then [200, {}, [Heddle::PubSub.publish("t", query["data"])]]
      when "/take"
        subscription = Heddle::PubSub::Subscription.new(Fiber.scheduler, "t", query["since"])
        File.write("waiting-#{$$}-#{subscription.object_id}", "")
        data, position = subscription.take
        subscription.close
        [200, { "x-worker" => $$.to_s }, ["#{position} #{data.inspect}"]]
      when "/die" then Process.kill("KILL", $$)
      else [200, { "x-worker" => $$.to_s }, []]
      end
    end
  RUBY

  def setup
    super
    write("config.ru", PUBSUB_APP)
  end

  def publish(data) = served.get("/publish?data=#{data}").body

  def take(since) = served.get("/take?since=#{since}").body

  def waiting_workers = Dir[path("waiting-*")].map { |name| name[/waiting-(\d+)/, 1] }.uniq

  # In a process that is none of the server's.
  def publish_from_outside(server = "unix:#{path("control.sock")}", topic: "t")
    program = 'require "heddle"; Heddle::PubSub.server = ARGV[0]; puts Heddle::PubSub.publish(ARGV[1], "outside")'
    IO.popen([RbConfig.ruby, "-I#{ROOT}/lib", "-e", program, server, topic, { err: %i[child out] }], &:read)
  end

  def publish_as_the_environment_says(address)
    program = 'require "heddle"; puts Heddle::PubSub.publish("t", "by the environment")'
    IO.popen([{ "HEDDLE_PUBSUB" => address }, RbConfig.ruby, "-I#{ROOT}/lib", "-e", program, { err: %i[child out] }],
             &:read)
  end

  ROOT = File.expand_path("../../..", __dir__)
  private_constant :ROOT

  def test_a_message_reaches_subscribers_of_every_worker
    serve("--control", "unix:control.sock")
    takers = []
    # Until each worker has one.
    until waiting_workers.size == 2
      takers << Thread.new { served.get("/take") }
      wait_until { Dir[path("waiting-*")].size == takers.size }
    end
    position = publish("hello")
    answers = takers.map(&:value)

    assert_equal ["#{position} \"hello\""], answers.map(&:body).uniq
    assert_equal 2, answers.map { |answer| answer["x-worker"] }.uniq.size
  end

  def test_a_process_outside_publishes_over_the_control_socket_or_fails
    serve("--control", "unix:control.sock")
    before = publish("x")
    position = publish_from_outside.chomp

    assert_equal "#{position} \"outside\"", take(before)
    assert_equal "#{publish_as_the_environment_says("unix:#{path("control.sock")}").chomp} \"by the environment\"",
                 take(position)
    assert_includes publish_as_the_environment_says("reddis://x"), %(HEDDLE_PUBSUB: "reddis://x" is not an address of)
    error = publish_from_outside("unix:#{path("nowhere.sock")}")

    assert_includes error, "no server listens on unix:#{path("nowhere.sock")}. Set Heddle::PubSub.server"
    assert_includes error, "UnreachableError"
    refute_includes error, "Run the command"
    assert_includes publish_from_outside(topic: "x" * 1_025), "has 1025 bytes, the limit is 1024 (ArgumentError)"
  end

  def test_the_history_outlives_workers_that_are_killed_a_reload_and_a_new_master
    serve("--control", "unix:control.sock", "--pidfile", "server.pid")
    before = publish("x")
    after = publish("kept")
    assert_raises(EOFError, Errno::ECONNRESET) { served.get("/die") }

    assert_equal "#{after} \"kept\"", take(before)
    client.command("reload")
    wait_for("reloaded")

    assert_equal "#{after} \"kept\"", take(before)
    old = served.pid
    client.command("restart")
    wait_for("serves; the old master ends")
    wait_until { File.read(path("server.pid")).to_i != old }
    @master = File.read(path("server.pid")).to_i
    wait_until { !alive?(old) }

    assert_equal "#{after} \"kept\"", take(before)
  ensure
    Process.kill("TERM", @master) if @master
    wait_until { !alive?(@master) } if @master
  end

  def test_the_size_of_the_history_is_configured
    serve("--control", "unix:control.sock", "--pubsub-history", "2", "--pubsub-memory", "64k")
    positions = Array.new(4) { |i| publish(i) }

    assert_equal "#{positions[2]} \"2\"", take(positions[1])
    assert_equal "#{positions[3]} nil", take(positions[0])
  end
end
