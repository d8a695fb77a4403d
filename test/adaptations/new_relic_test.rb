# frozen_string_literal: true

require "test_helper"
require "support/served_process"

# New Relic's agent knows the server, and connects in workers only. Nothing leaves the machine.
class NewRelicTest < Minitest::Test
  FILE = File.expand_path("new_relic.ru", __dir__)
  ENVIRONMENT = { "NEW_RELIC_LICENSE_KEY" => "0123456789" * 4, "NEW_RELIC_APP_NAME" => "probe",
                  "RACK_ENV" => "production", "NEW_RELIC_HOST" => "127.0.0.1", "NEW_RELIC_PORT" => "9",
                  "NEW_RELIC_LOG" => "stdout",
                  "NEW_RELIC_LOG_LEVEL" => "info", "NEW_RELIC_MONITOR_MODE" => "true" }.freeze

  def teardown = @served&.stop

  def serve(*flags, **environment)
    skip "needs the gem newrelic_rpm: bin/setup" if Gem::Specification.find_all_by_name("newrelic_rpm").empty?
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", FILE, "-p", "0", "-b", "127.0.0.1", "--no-access-log",
                                 "--reserve-workers", "0", *flags],
                                environment: { **ENVIRONMENT, **environment.transform_keys(&:to_s) })
  end

  def test_dispatcher_is_known_and_the_mold_does_not_connect
    serve("-w", "2")

    assert_match(/\A:falcon false false/, @served.get("/").body)
    sleep 0.01 until @served.output.include?("Protection:")

    assert_includes @served.output, "falcon may fork"
    assert_match(/^Adapted: newrelic_rpm 10/, @served.output)
  end

  def test_dispatcher_of_the_operator_counts
    serve(NEW_RELIC_DISPATCHER: "unicorn")

    assert_match(/\A:unicorn true/, @served.get("/").body)
  end
end
