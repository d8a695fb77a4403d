# frozen_string_literal: true

require "test_helper"
require "server/server_helpers"
require_relative "../../benchmark/support/bench"
require_relative "support/suite_promises"

class RealtimeBenchmarkSuiteTest < Minitest::Test
  include SuitePromises
  include GoalPromises
  include ServerHelpers

  # As benchmark/realtime/servers/heddle.ru.
  class Room
    def on_open(client) = client.subscribe("bench room")
    def on_message(client, message) = client.publish("bench room", message)
  end

  # Sends back what comes.
  class Echo
    def on_message(client, message) = client.write(message)
  end

  def setup
    @suite = Bench::Suite.load("realtime")
    Heddle::PubSub::History.open(16 << 20, 100, 300)
  end

  def test_each_application_is_there
    servers = File.join(Bench::ROOT, "benchmark/realtime/servers")

    assert_equal %w[cable.ru channels.rb falcon.ru heddle.ru iodine.ru ws.js], Dir.children(servers).sort
  end

  def sockets(handler, count, &)
    app = ->(env) { Heddle::WebSocket.upgrade(env, handler) }
    serving(app, lint: false) do
      Bench::HTTP::Native.run("sockets", port, "/", count, "", "", "", &)
    end
  end

  def test_the_program_counts_what_reaches_all_others_and_not_readers_that_stopped
    sockets(Room.new, 5) do |said, input|
      assert_equal [5, 0], said.call.values_at(:opened, :failed)
      input.puts("publish 3 100")
      assert_equal [3, 0], said.call.values_at(:messages, :missing)
      input.puts("stop 1")
      assert_equal({ stopped: 1 }, said.call)
      input.puts("publish 2 70000")

      assert_equal [2, 0], said.call.values_at(:messages, :missing)
    end
  end

  def test_the_program_counts_event_streams_that_one_socket_publishes_to
    app = lambda do |env|
      next Heddle::WebSocket.upgrade(env, Room.new) unless env["PATH_INFO"] == "/events"

      Heddle::EventStream.response("bench room")
    end
    serving(app, lint: false) do
      Bench::HTTP::Native.run("sockets", port, "/", 5, "", "", "", "/events") do |said, input|
        assert_equal [5, 0], said.call.values_at(:opened, :failed)
        input.puts("publish 3 100")
        assert_equal [3, 0], said.call.values_at(:messages, :missing)
        input.puts("publish 2 70000")

        assert_equal [2, 0], said.call.values_at(:messages, :missing)
      end
    end
  end

  def test_the_program_counts_echoes_and_handshakes
    sockets(Echo.new, 4) do |said, input|
      said.call
      input.puts("echo 10 1000")
      echoed = said.call
      assert_operator echoed[:messages], :>=, 8
      assert_equal 0, echoed[:missing]
      input.puts("handshakes 1000")

      assert_operator said.call[:handshakes], :>, 4
    end
  end

  # A subscriber that missed a message knows of it, or it is lost.
  def test_messages_count_as_lost_unless_a_reset_says_so
    rows = %w[redis-killed redis-forgets].map { |key| @suite.row(key) }
    account = (1..6).map { |number| [number.to_s, number == 2 ? nil : "a:#{number}"] }
    received = [["1", "a:1"], [nil, "b:1"], ["5", "b:2"], ["6", "a:6"], ["6", "a:6"]]
    durable, forgetful = rows.map { |row| row.__send__(:sample, account, received) }

    assert_equal [2 + 1, 1, 1], durable.values_at(:value, :resets, :unconfirmed), "3 and 4, and 6 came twice"
    assert_equal [0 + 1, 1], forgetful.values_at(:value, :doubled)
    twice = rows.last.__send__(:sample, account, [["1", "a:1"], ["2", "a:1"], *account.drop(2)])

    assert_equal 1, twice[:doubled], "one position of two messages"
  end

  def test_sockets_that_are_refused_have_failed
    serving(->(_env) { [404, {}, []] }, lint: false) do
      Bench::HTTP::Native.run("sockets", port, "/", 3, "", "", "") do |said, _|
        assert_equal [0, 3], said.call.values_at(:opened, :failed)
      end
    end
  end
end
