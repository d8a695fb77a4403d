# frozen_string_literal: true

# test: smoke

require "test_helper"
require_relative "served_example"

# examples/plain, over real sockets.
class PlainExampleTest < Minitest::Test
  def setup
    @served = ServedExample.shared("plain")
  end

  def test_the_root_path_greets
    answer = @served.get("/")

    assert_equal ["200", "Hello from Heddle\n"], [answer.code, answer.body]
  end

  def test_twenty_naps_of_a_second_take_one_second
    seconds = @served.all_at_once(20, "/sleep?seconds=1") { |answer| assert_equal "slept 1.0 s\n", answer.body }

    assert_operator seconds, :<, 10, "one after the other they would take 20"
  end

  def test_curl_gets_each_number_when_it_is_counted
    curl = need_program("curl")
    times, lines = @served.lines_by_curl(curl, "/count?to=4&pause=0.5").transpose

    assert_equal %W[1\n 2\n 3\n 4\n], lines
    assert_operator times.last - times.first, :>, 0.5, "they came together"
  end

  def test_a_body_of_known_length_is_echoed_byte_for_byte
    body = Random.new(3).bytes(1_500_000)
    answer = Net::HTTP.post(@served.at("/echo"), body, "content-type" => "application/x-test")

    assert_equal "application/x-test", answer["content-type"]
    assert_equal body, answer.body.b
  end

  def test_a_chunked_body_of_curl_is_echoed_byte_for_byte
    curl = need_program("curl")
    body = Random.new(4).bytes(700_000)
    echoed, = Open3.capture2(curl, "--silent", "--show-error", "-X", "POST", "-H", "Transfer-Encoding: chunked",
                             "--data-binary", "@-", @served.at("/echo").to_s, stdin_data: body, binmode: true)

    assert_equal body, echoed
  end

  def test_wrk_finds_no_error_on_fifty_connections
    wrk = need_program("wrk")
    report, status = Open3.capture2e(wrk, "-t1", "-c50", "-d1s", @served.uri.to_s)

    assert_predicate status, :success?, report
    assert_operator report[/(\d+) requests in/, 1].to_i, :>, 50, report
    refute_match(/Socket errors|Non-2xx/, report)
  end

  def test_ctrl_c_stops_it_with_success
    served = ServedExample.new("plain")
    status = served.stop

    assert_predicate status, :success?, served.output
  end

  def test_an_unknown_path_gets_404_with_the_known_paths
    answer = @served.get("/nowhere")

    assert_equal "404", answer.code
    assert_includes answer.body, "/sleep?seconds=1"
  end
end
