# frozen_string_literal: true

# test: nightly

require "test_helper"
require_relative "run"
require_relative "report"

# A minute of bin/soak, too short to judge its memory.
class SoakRunTest < Minitest::Test
  def test_no_response_is_lost_in_a_minute_of_killed_workers_and_restarts_of_the_database
    skip "PostgreSQL is not installed" unless PrivatePostgresql.programs
    report = SoakTest::Report.of(SoakTest::Run.new(60, output: StringIO.new).run, {})

    assert_empty report.to_h["lost"]
    assert_empty report.to_h["errors"]
    assert_equal [0, 0, 0], report.to_h["missing"].values
    assert_operator report.to_h["answered"].values_at("upload", "upstream", "job", "WebSocket", "event").min, :>, 0
  end
end
