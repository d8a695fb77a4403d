# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class WrkTest < Minitest::Test
  CLEAN = <<~TEXT
    Running 1s test @ http://127.0.0.1:9/
      1 threads and 64 connections
      Thread Stats   Avg      Stdev     Max   +/- Stdev
        Latency     1.25ms    4.08ms  60.93ms   97.86%
        Req/Sec    86.56k     5.23k   92.69k    80.00%
      Latency Distribution
         50%  655.00us
         75%  717.00us
         90%    0.98ms
         99%   21.50ms
      86241 requests in 1.00s, 3.12MB read
    Requests/sec:  86103.46
    Transfer/sec:      3.12MB
  TEXT
  TROUBLED = CLEAN.sub("Requests/sec:", <<~TEXT)
    Socket errors: connect 3, read 0, write 1, timeout 20
    Non-2xx or 3xx responses: 7
    Requests/sec:
  TEXT

  def test_wrk_output_is_parsed
    run = Bench::Wrk.new(CLEAN)

    assert_equal 86_241, run.requests
    assert_in_delta 86_103.46, run.rate
    assert_in_delta 21.5, run.p99_ms
    assert_equal 0, run.socket_errors
  end

  def test_every_kind_of_wrk_error_is_counted_and_named
    run = Bench::Wrk.new(TROUBLED)

    assert_equal 31, run.socket_errors
    assert_equal "connect 3, write 1, timeout 20, status 7", run.error_words
  end

  def test_units_of_latency
    assert_in_delta 0.655, Bench::Wrk.new("  99%  655.00us\n").p99_ms
    assert_in_delta 1_500, Bench::Wrk.new("  99%    1.50s\n").p99_ms
    assert_nil Bench::Wrk.new("").p99_ms
  end
end
