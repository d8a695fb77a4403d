# frozen_string_literal: true

# test: long

require "test_helper"
require "json"
require_relative "served_example"

# What examples/rails does over real sockets, whatever the environment.
module RailsExampleBehaviour
  def setup
    skip "needs the gems of examples/rails: bin/setup" unless ServedExample.gems?("rails")
    environment = { "RAILS_ENV" => rails_env, "SECRET_KEY_BASE" => "0" * 64 }
    @served = ServedExample.shared("rails", bundled: true, environment: environment)
  end

  def test_the_page_is_rendered_and_the_health_check_passes
    page = @served.get("/")

    assert_equal "200", page.code, @served.output
    assert_match(/A Rails 8\.\d+\.\d+.* application, served on Ruby #{Regexp.escape(RUBY_VERSION)}/, page.body)
    assert_equal "200", @served.get("/up").code
  end

  def test_twenty_naps_of_a_second_take_one_second_and_keep_their_own_request
    @served.get("/") # loads the application's classes in development
    answers = []
    seconds = @served.all_at_once(20, "/nap?seconds=1") { |answer| answers << JSON.parse(answer.body) }

    assert_operator seconds, :<, 10, "one after the other they would take 20"
    assert_equal [true], answers.map { |answer| answer["same_request_after_the_nap"] }.uniq
    assert_equal 20, answers.map { |answer| answer["request_id"] }.uniq.size
  end

  def test_curl_gets_each_live_event_when_it_is_written
    curl = need_program("curl")
    events = @served.lines_by_curl(curl, "/count/live?to=3&pause=1").select { |_, line| line.start_with?("data:") }
    times, lines = events.transpose

    assert_equal (1..3).map { |number| "data: {\"number\":#{number}}\n" }, lines
    assert_operator times.last - times.first, :>, 0.5, "they came together"
  end

  def test_a_live_action_ends_when_its_client_leaves
    before = @served.output.scan("nobody listens any more").size
    socket = TCPSocket.new(@served.uri.host, @served.uri.port)
    socket.write("GET /count/live?to=1000000&pause=0.05 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    socket.gets("\"number\":1}")
    socket.close
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    until @served.output.scan("nobody listens any more").size > before
      flunk "it goes on:\n#{@served.output}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
    end

    assert_equal "200", @served.get("/up").code
  end

  def test_curl_gets_each_piece_of_a_body_when_it_is_made
    curl = need_program("curl")
    times, lines = @served.lines_by_curl(curl, "/count/body?to=3&pause=1").transpose

    assert_equal %W[1\n 2\n 3\n], lines
    assert_operator times.last - times.first, :>, 0.5, "they came together"
  end

  def test_a_body_is_echoed_byte_for_byte
    body = Random.new(5).bytes(300_000)
    answer = Net::HTTP.post(@served.at("/echoes"), body, "content-type" => "application/octet-stream")

    assert_equal body, answer.body.b
  end

  def test_wrk_finds_no_error_on_twenty_connections
    wrk = need_program("wrk")
    @served.get("/up")
    report, status = Open3.capture2e(wrk, "-t1", "-c20", "-d1s", @served.at("/up").to_s)

    assert_predicate status, :success?, report
    refute_match(/Socket errors|Non-2xx/, report)
  end
end

class RailsExampleInDevelopmentTest < Minitest::Test
  include RailsExampleBehaviour

  def rails_env = "development"
end

class RailsExampleInProductionTest < Minitest::Test
  include RailsExampleBehaviour

  def rails_env = "production"
end
