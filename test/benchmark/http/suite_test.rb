# frozen_string_literal: true

require "test_helper"
require "stringio"
require_relative "../../../benchmark/support/bench"
require_relative "../support/suite_promises"

class HTTPBenchmarkSuiteTest < Minitest::Test
  include SuitePromises
  include GoalPromises

  def setup
    @suite = Bench::Suite.load("http")
  end

  def test_scripts_for_wrk_are_there
    scripts = @suite.rows.filter_map { |row| row.instance_variable_get(:@script) }

    assert_equal 3, scripts.size
    scripts.each { |path| assert_path_exists path }
  end

  def test_a_contestant_without_application_support_is_left_out_of_application_rows
    nginx = @suite.contestant("nginx")
    left_out = @suite.rows.select { |row| row.excludes(nginx) }.map(&:key)

    assert_equal %w[stream sleep-100ms sleep-1s], left_out
    assert_equal ["body-12m"], @suite.rows.reject { |row| row.excludes(@suite.contestant("sender")) }.map(&:key)
  end

  def test_a_server_that_is_not_installed_is_left_out_with_the_reason
    absent = Class.new(Bench::HTTP::Contestant) { def key = "no-such-server" }.new

    assert_match(/the gem no-such-server is not installed/, @suite.probe(absent, ruby_flags: [])[:failure])
  end

  def test_the_sender_runs_its_row
    need_program("wrk")
    options = Bench::Options.new(["--quick", "--only", "body-12m", "--contestants", "sender"])
    row = Bench::Report.new(Bench::Runner.new(@suite, options, output: StringIO.new).run).rows.first
    set = row.set("sender")

    assert_predicate set, :complete?, set.failure
    assert_operator set.median, :>, 0
    assert_operator set.median(:cpu_us), :>, 0
  end
end
