# frozen_string_literal: true

require "test_helper"
require "heddle/cli/demo"
require_relative "../../server/server_helpers"
require "support/free_port"
require "json"

# The crowd that the demo sends to its own server, as a process of its own.
class DemoCrowdTest < Minitest::Test
  include ServerHelpers

  HELLO = Heddle::CLI::Demo::HELLO

  # @return [Array<Hash>] the lines of the crowd
  def crowd(clients: 3, seconds: 0.5, port: self.port, stopping: -> { false })
    lines = []
    body = Heddle::CLI::Demo::Crowd.new("127.0.0.1", port, "/hello", clients, seconds, stopping:)
    Timeout.timeout(PATIENCE) do
      body.each do |line|
        lines << JSON.parse(line)
        yield if block_given?
      end
    end
    lines
  end

  def test_clients_send_requests_until_the_time_is_over_and_report_their_responses
    asked = 0
    app = lambda do |_env|
      asked += 1
      [200, {}, [HELLO]]
    end
    lines = serving(app, lint: false, access_log: false) { crowd }
    done = lines.last

    assert_equal "done", done["event"]
    assert_equal [3, 0, nil], done.values_at("clients", "failed", "message")
    assert_operator done["answers"], :>, 3
    assert_equal asked, done["answers"]
    assert_operator done["seconds"], :>=, 0.5
    assert_operator done["p99"], :>=, done["median"]
    assert_equal "going", lines.first["event"]
  end

  def test_wrong_response_fails_the_client_and_is_reported
    done = serving(->(_env) { [500, {}, ["no"]] }) { crowd }.last

    assert_equal [0, 3], done.values_at("answers", "failed")
    assert_match(%r{the response was "HTTP/1\.1 500}, done["message"])
    assert_nil done["median"]
  end

  def test_refused_connection_fails_every_client
    closed = FreePort.find

    assert_match(/ECONNREFUSED/, crowd(port: closed).last["message"])
  end

  # The crowd would run for an hour: `each` returns only when its process has ended.
  def test_process_ends_when_the_reader_of_the_body_fails
    serving(text(HELLO), access_log: false) do
      error = assert_raises(IOError) { crowd(seconds: 3600) { raise IOError, "gone" } }

      assert_equal "gone", error.message
    end
  end

  def test_process_ends_when_the_server_stops
    serving(text(HELLO), access_log: false) do
      assert_equal 1, crowd(seconds: 3600, stopping: -> { true }).size
    end
  end
end
