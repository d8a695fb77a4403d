# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"
require_relative "served_example"

# examples/dns_summaries, by dig: the stand-in answers nothing before all queries have reached it.
class DNSSummariesExampleTest < Minitest::Test
  FOLDER = File.expand_path("../../examples/dns_summaries", __dir__)
  LIB = File.expand_path("../../lib", __dir__)
  # Seconds in which a busy machine does anything.
  PATIENCE = 60

  def setup
    need_program("dig")
  end

  def teardown
    if @server
      Process.kill(:TERM, @server.pid)
      @server.close
    end
    @served&.stop
  end

  def test_fifty_slow_queries_run_at_once_and_the_repeated_one_comes_from_the_cache
    start("TOGETHER" => "50", "DELAY" => "0.01")
    # Each from an address of its own: dig sets SO_REUSEPORT, so that two at once may get the same port, and one of them
    # the answers to both.
    answers = Array.new(50) do |number|
      Thread.new { dig("article#{number}.wiki", "TXT", "+short", "-b", "127.0.1.#{number + 1}") }
    end.map(&:value)

    assert_equal Array.new(50) { |number| "\"All that is known about article#{number}.\"\n" }, answers
    assert_equal({ "requests" => 50, "most" => 50 }, counts)
    assert_equal answers.first, dig("article0.wiki", "TXT", "+short")
    assert_equal 50, counts.fetch("requests")
  end

  def test_a_summary_of_3000_bytes_comes_over_tcp_after_truncation
    start("DELAY" => "0.01")
    output = dig("long.wiki", "TXT")

    assert_match(/Truncated, retrying in TCP mode/, output)
    assert_match(/\(TCP\)/, output)
    text = output[/^long\.wiki\.\s+\d+\s+IN\s+TXT\s+"(.*)"$/, 1].gsub('" "', "")

    assert_equal 3_000, text.bytesize
    assert_equal 1, counts.fetch("requests")
  end

  def test_an_absent_name_gets_nxdomain
    start("DELAY" => "0.01")

    assert_match(/status: NXDOMAIN.*AUTHORITY: 1/m, dig("nothing.wiki", "TXT"))
    assert_match(/status: REFUSED/, dig("example.org", "A"))
  end

  def test_measure_prints_what_was_asked_and_how_it_came
    environment = { "DELAY" => "0.01", "PATH" => "#{ROOT}/exe:#{ENV.fetch("PATH")}", "RUBYLIB" => LIB }
    out, status = Open3.capture2e(environment, RbConfig.ruby, "measure.rb", "5", chdir: FOLDER)

    assert_predicate status, :success?, out
    assert_match(/^5 of 5 answered in .* by one client; the service was asked 5 times, \d at once$/, out)
    assert_match(/^5 of 5 answered in .* by dig, .*; the service was asked 10 times, \d at once$/, out)
    assert_match(/^the first one again: \d+ ms; the service was asked 10 times/, out)
    assert_match(/^a summary of 3000 bytes: Truncated, retrying in TCP mode, TCP$/, out)
  end

  private

  def start(environment)
    @served = ServedExample.new("dns_summaries", environment: environment)
    @server = IO.popen({ "SERVICE" => @served.uri.to_s, "LISTEN" => "127.0.0.1:0", "DEADLINE" => PATIENCE.to_s },
                       [RbConfig.ruby, "-I#{LIB}", "summaries.rb"], chdir: FOLDER)
    @port = @server.gets[/\d+$/]
  end

  def dig(*arguments)
    output, status = Open3.capture2e("dig", "@127.0.0.1", "-p", @port, "+tries=1", "+time=#{PATIENCE}", *arguments)

    assert_predicate status, :success?, output
    output
  end

  def counts = JSON.parse(@served.get("/counts").body)
end
