# frozen_string_literal: true

require "test_helper"
require "rack/lint"
require "rack/mock"
require_relative "../../../benchmark/support/bench"

class ModesBenchmarkSuiteTest < Minitest::Test
  def setup
    @suite = Bench::Suite.load("modes")
  end

  def test_goals_are_those_of_contestants
    keys = @suite.contestants.map(&:key)

    assert_equal keys, keys.uniq
    @suite.rows.each do |row|
      refute_empty row.goals, row.key
      assert_empty row.goals.flat_map { |goal| goal.to_h.values_at(:whose, :than) } - keys, row.key
    end
  end

  def test_the_application_does_what_the_rows_name
    request = Rack::MockRequest.new(Rack::Lint.new(Bench::Modes::Application.new))

    assert_equal "6765\n", request.get("/cpu").body
    assert_equal File.read(Bench::Modes::Application::FILE), request.get("/file").body
    assert_equal 404, request.get("/else").status
  end

  # In every way to run it; what asks another server is left to the benchmark.
  def test_the_application_is_served_in_each_way
    @suite.contestants.grep(Bench::Modes::Contestant).each do |contestant|
      Bench::HTTP::Server.run(contestant, ruby_flags: []) do |server|
        server.check("/cpu", expected: "6765\n")
        server.check("/file", expected: File.read(Bench::Modes::Application::FILE))
      end
    end
  end
end
