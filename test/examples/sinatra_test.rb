# frozen_string_literal: true

require "test_helper"
require_relative "served_example"

# examples/sinatra, over real sockets.
class SinatraExampleTest < Minitest::Test
  def setup
    skip "needs the gems of examples/sinatra: bin/setup" unless ServedExample.gems?("sinatra")
    @served = ServedExample.new("sinatra", bundled: true)
  end

  def teardown
    @served&.stop
  end

  def test_a_note_that_is_pinned_is_on_the_board
    answer = Net::HTTP.post_form(@served.at("/notes"), "text" => "<warp & weft>")

    assert_equal "303", answer.code
    assert_includes Net::HTTP.get(URI(answer["location"])), "&lt;warp &amp; weft&gt;"
    assert_equal "422", Net::HTTP.post_form(@served.at("/notes"), "text" => " ").code
  end

  def test_twenty_naps_of_a_second_take_one_second
    seconds = @served.all_at_once(20, "/sleep/1") { |answer| assert_equal "slept 1 s\n", answer.body }

    assert_operator seconds, :<, 10, "one after the other they would take 20"
  end

  def test_curl_gets_each_note_when_it_is_read
    curl = need_program("curl")
    %w[one two three].each { |text| Net::HTTP.post_form(@served.at("/notes"), "text" => text) }
    times, lines = @served.lines_by_curl(curl, "/notes/slowly?pause=0.5").transpose

    assert_equal ["one\n", "two\n", "three\n", "That is all.\n"], lines
    assert_operator times.last - times.first, :>, 0.5, "they came together"
  end

  def test_wrk_finds_no_error_on_twenty_connections
    wrk = need_program("wrk")
    report, status = Open3.capture2e(wrk, "-t1", "-c20", "-d1s", @served.uri.to_s)

    assert_predicate status, :success?, report
    refute_match(/Socket errors|Non-2xx/, report)
  end
end
