# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/support/bench"
require_relative "../../../benchmark/http2/h2load"

class H2loadTest < Minitest::Test
  CLEAN = <<~TEXT
    finished in 806.59ms, 123980.00 req/s, 3.53MB/s
    requests: 100000 total, 100000 started, 100000 done, 100000 succeeded, 0 failed, 0 errored, 0 timeout
    status codes: 100000 2xx, 0 3xx, 0 4xx, 0 5xx
  TEXT
  TROUBLED = <<~TEXT
    finished in 806.59ms, 74235.70 req/s, 2.13MB/s
    requests: 100000 total, 59878 started, 59878 done, 59870 succeeded, 40130 failed, 40122 errored, 1 timeout
    status codes: 59870 2xx, 0 3xx, 5 4xx, 3 5xx
  TEXT

  def test_h2load_output_is_parsed
    run = Bench::HTTP2::H2load.new(CLEAN)

    assert_equal [100_000, 0, 0, ""], [run.requests, run.wrong_answers, run.socket_errors, run.error_words]
    assert_in_delta 123_980.0, run.rate
  end

  def test_every_kind_of_h2load_error_is_counted
    run = Bench::HTTP2::H2load.new(TROUBLED)

    assert_equal [59_878, 8], [run.requests, run.wrong_answers]
    assert_equal "failed 40130, errored 40122, timeout 1", run.error_words
  end
end
