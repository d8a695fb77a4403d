# frozen_string_literal: true

require "test_helper"
require "heddle/cli/demo"
require_relative "../../server/server_helpers"
require "json"

# The crowd that the demo sends to its own server, as a process of its own.
class DemoBurstTest < Minitest::Test
  include ServerHelpers

  HELLO = Heddle::CLI::Demo::Panels::Live::HELLO

  # @return [Array<Hash>] what the crowd has told
  def burst(clients: 3, seconds: 0.5, port: self.port, stopping: -> { false })
    lines = []
    body = Heddle::CLI::Demo::Burst.new("127.0.0.1", port, "/hello", clients, seconds, stopping:)
    Timeout.timeout(PATIENCE) do
      body.each do |line|
        lines << JSON.parse(line)
        yield if block_given?
      end
    end
    lines
  end

  def test_clients_ask_again_and_again_and_say_what_they_got
    asked = 0
    app = lambda do |_env|
      asked += 1
      [200, {}, [HELLO]]
    end
    lines = serving(app, lint: false, access_log: false) { burst }
    done = lines.last

    assert_equal "done", done["event"]
    assert_equal [3, 0, nil], done.values_at("clients", "failed", "message")
    assert_operator done["answers"], :>, 3
    assert_equal asked, done["answers"]
    assert_operator done["seconds"], :>=, 0.5
    assert_operator done["p99"], :>=, done["median"]
    assert_equal "going", lines.first["event"]
  end

  def test_what_is_no_right_answer_is_a_failure_and_says_why
    done = serving(->(_env) { [500, {}, ["no"]] }) { burst }.last

    assert_equal [0, 3], done.values_at("answers", "failed")
    assert_match(%r{the answer was "HTTP/1\.1 500}, done["message"])
    assert_nil done["median"]
  end

  def test_nobody_there_is_a_failure_of_every_client
    closed = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

    assert_match(/ECONNREFUSED/, burst(port: closed).last["message"])
  end

  # The crowd would go on for an hour: each returns only when its process has ended.
  def test_the_crowd_goes_when_the_page_goes
    serving(text(HELLO), access_log: false) do
      error = assert_raises(IOError) { burst(seconds: 3600) { raise IOError, "gone" } }

      assert_equal "gone", error.message
    end
  end

  def test_the_crowd_goes_when_the_server_stops
    serving(text(HELLO), access_log: false) do
      assert_equal 1, burst(seconds: 3600, stopping: -> { true }).size
    end
  end
end
