# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "heddle/cli"
require "stringio"

# What counts against an endpoint, and how it is told.
class ServerLearnedTest < Minitest::Test
  def setup
    @learned = Heddle::Server::Learned.new
  end

  def stall(cause, request = "GET /reports/7", seconds: 0.5)
    Heddle::Stall.new([cause, 1.0, seconds, request, ""])
  end

  def test_only_native_code_that_keeps_the_lock_counts_and_only_in_a_request
    %i[native ruby waiting_for_gvl].each { |cause| @learned.call(stall(cause)) }
    @learned.call(stall(:native_with_gvl, ""))

    assert_empty @learned.to_a
    2.times { @learned.call(stall(:native_with_gvl)) }
    one = @learned.to_a.first

    assert_equal ["GET /reports/:id", 2], one.values_at(:endpoint, :stalls)
    assert_in_delta 1.0, one[:score], 0.5 # some of it has decayed
    assert_in_delta Time.now.to_f, one[:last], 60
  end

  def test_the_highest_score_comes_first
    @learned.call(stall(:native_with_gvl, "GET /a", seconds: 0.1))
    @learned.call(stall(:native_with_gvl, "GET /b", seconds: 9))

    assert_equal ["GET /b", "GET /a"], @learned.to_a.map { |one| one[:endpoint] }
    assert_equal 1, @learned.forget("GET /b")
    assert_equal ["GET /a"], @learned.to_a.map { |one| one[:endpoint] }
  end

  def test_the_stall_report_tells_it_of_every_stall
    before = Heddle::Stalls.recent.size
    Heddle::Stalls.observed_by(@learned) do
      Heddle::Stalls.send(:count, stall(:native_with_gvl))
    end
    Heddle::Stalls.send(:count, stall(:native_with_gvl))

    assert_equal([1], @learned.to_a.map { |one| one[:stalls] })
  ensure
    Heddle::Stalls.reset if before.zero?
  end

  def test_a_person_reads_a_table
    now = Time.at(1_000_000)
    table = lambda do |*endpoints|
      Heddle::CLI::LearnedTable.new(endpoints, now).lines
    end

    assert_equal ["no endpoint has lately held up a worker by native code"], table.call
    assert_equal ["   score  stalls  last        worker  endpoint",
                  "  1.25 s       3  7 s ago          1  GET /a?",
                  "  0.10 s       1  5 min ago      any  GET /b"],
                 table.call({ endpoint: "GET /a\e", score: 1.25, stalls: 3, last: 999_993.0, worker: 1 },
                            { endpoint: "GET /b", score: 0.1, stalls: 1, last: 999_700.0 })
  end
end
