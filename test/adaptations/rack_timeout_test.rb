# frozen_string_literal: true

# test: long

require "test_helper"
require "support/served_process"

# Rack::Timeout ends the request whose time is over, and no other.
class RackTimeoutTest < Minitest::Test
  FILE = File.expand_path("rack_timeout.ru", __dir__)

  def setup
    skip "needs the gem rack-timeout: bin/setup" if Gem::Specification.find_all_by_name("rack-timeout").empty?
  end

  def teardown = @served&.stop

  def serve(*flags, **environment)
    flags.push("--workers", "0") unless flags.include?("-w")
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", FILE, "-p", "0", "-b", "127.0.0.1", "--no-access-log",
                                 "--reserve-workers", "0", *flags],
                                environment: { "RACK_ENV" => "production", **environment.transform_keys(&:to_s) })
  end

  [%w[--mode fiber], %w[--mode fiber -w 2], %w[--mode thread --threads 12]].each do |flags|
    define_method(:"test_slow_request_gets_503_and_no_other_with_#{flags.join("_").tr("- ", "")}") do
      serve(*flags)
      slow = Array.new(2) { Thread.new { @served.get("/sleep") } }
      others = Array.new(8) { Thread.new { Array.new(5) { @served.get("/").body } } }.flat_map(&:value)

      assert_equal ["own"] * 40, others
      slow.map(&:value).each do |answer|
        assert_equal "503", answer.code
        assert_match(/RequestTimeoutError: Request ran for longer than 2000ms/, answer.body)
      end
      assert_equal "own", @served.get("/").body
    end
  end

  def test_computing_request_is_ended
    serve

    assert_equal "503", @served.get("/compute").code
  end

  def test_application_can_rescue_the_exception_of_its_request
    serve

    assert_match(%r{\Arescued: Request ran for longer than 2000ms.*, /rescue}, @served.get("/rescue").body)
  end

  def test_observers_see_the_states_of_a_request
    serve
    @served.get("/")
    @served.get("/sleep")

    assert_equal "ready active completed", @served.get("/states?/").body
    assert_equal "ready active timed_out completed", @served.get("/states?/sleep").body
    assert_empty @served.get("/threads").body
  end

  def test_request_that_has_waited_for_too_long_is_not_begun
    serve
    answer = Net::HTTP.get_response(@served.at("/"), { "X-Request-Start" => "t=#{(Time.now.to_i - 90) * 1_000_000}" })

    assert_equal "503", answer.code
    assert_match(/RequestExpiryError/, answer.body)
  end

  def test_term_on_timeout_stops_the_process_in_order
    serve(TERM_AFTER: "yes")

    assert_equal "503", @served.get("/sleep").code
    assert_predicate @served.wait, :success?
  end

  def test_boot_line_names_it
    serve
    sleep 0.01 until @served.output.include?("Protection:")

    assert_match(/^Adapted: rack-timeout 0\.\d/, @served.output)
  end

  def test_without_the_adaptation_what_it_raises_is_dropped
    serve(HEDDLE_ADAPT: "off")
    slow = Thread.new { @served.get("/rescue") }
    slow.report_on_exception = false
    sleep 0.01 until @served.output.include?("RequestTimeoutException")

    assert_equal "own", @served.get("/").body
    refute_includes @served.output, "Adapted"
  ensure
    @served.kill
    begin
      slow&.value
    rescue EOFError, SystemCallError
      nil # it never ends
    end
    @served = nil
  end
end
