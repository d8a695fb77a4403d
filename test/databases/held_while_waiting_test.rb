# frozen_string_literal: true

# test: long
# test: one version

require_relative "support/database_programs"

# Connections of Active Record and Sequel that are held while their fibers wait for something else.
class HeldWhileWaitingTest < Minitest::Test
  include DatabasePrograms

  PROGRAM = File.join(FOLDER, "held_program.rb")
  POOLS = { "active_record" => /\S+ writing/, "sequel" => /\S+/ }.freeze

  POOLS.each do |library, pool|
    DatabasePrograms::DRIVERS.each do |driver|
      define_method("test_#{library}_with_#{driver}_each_place_is_reported_once_and_no_query_is") do
        seen = held(library, driver, "development")
        reports = seen["reports"].grep(/ checked .+ out/)
        own, leased = reports.partition { |report| report.include?("waits at #{PROGRAM}:#{seen["lines"]["waits"]}") }

        assert_equal 1, own.size, reports.join
        assert_match(/\Aheddle: #{pool}: a fiber has held a connection for \d\.\d s while it waits for something/,
                     own.first)
        assert_match(/It checked the connection out at \S+access\.rb:\d+, and waits at \S+\. Return the connection/,
                     own.first)
        assert_equal library == "active_record" ? 1 : 0, leased.size, leased.join
        assert_leased leased.first, seen["lines"] if leased.any?
      end
    end
  end

  def test_in_production_nothing_is_reported_unless_it_is_asked_for
    assert_empty held("sequel", "pg", "production")["reports"]
    assert_equal 1, held("sequel", "pg", "production", "REPORT_HELD" => "1")["reports"].grep(/ checked .+ out/).size
  end

  private

  def held(library, driver, environment, variables = {})
    env = { "RACK_ENV" => environment, **variables }
    database_program("held_program", library, driver, limit: 10, env:)
  end

  def assert_leased(report, lines)
    assert_includes report, "out at #{PROGRAM}:#{lines["leased"]}, as a permanent lease, and waits at"
    assert_includes report, "Use with_connection"
  end
end
