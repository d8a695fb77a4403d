# frozen_string_literal: true

require "test_helper"
require "pg"
require "support/private_postgresql"
require "support/served_process"

# The fiber of an Enumerator belongs to the request that resumes it: its state, its connection, its transaction.
class ActiveSupportAdaptationTest < Minitest::Test
  FILE = File.expand_path("active_support.ru", __dir__)

  def teardown = @served&.stop

  def serve
    skip "needs PostgreSQL: bin/setup --system" unless PrivatePostgresql.programs
    environment = { "DATABASE_URL" => PrivatePostgresql.shared.url, "RACK_ENV" => "production" }
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", FILE, "-p", "0", "-b", "127.0.0.1", "--workers", "0",
                                 "--no-access-log"], environment:)
  end

  def test_enumerator_has_the_state_of_its_request
    serve
    answers = Array.new(8) { |i| Thread.new { @served.get("/state?#{i}").body } }.map(&:value)

    assert_equal(Array.new(8) { |i| "nil #{i} nil" }, answers)
  end

  def test_connection_that_an_enumerator_has_leased_goes_back_with_the_request
    serve

    assert_equal(["7"] * 6, Array.new(6) { @served.get("/lease").body }, @served.output)
  end

  def test_connections_of_other_fibers_that_were_left_behind_go_back_with_the_request
    serve
    %w[fiber chain lazy produce nested task transferred].each do |kind|
      assert_equal(["7"] * 4, Array.new(4) { @served.get("/left?#{kind}").body }, "#{kind} #{@served.output}")
    end
    assert_equal(["7"] * 4, Array.new(4) { @served.get("/body").body }, @served.output)
  end

  def test_enumerator_queries_in_the_transaction_of_its_request
    serve

    assert_equal "1", @served.get("/transaction").body, @served.output
  end
end
