# frozen_string_literal: true

require "test_helper"
require "json"
require "tempfile"
require "support/h2_exchanges"
require_relative "server_helpers"

# The time account of each request: its parts in the access log, in the metrics and for the application.
class AccountTest < Minitest::Test
  include ServerHelpers
  include H2Exchanges

  DELAY = 0.05
  # Seconds, which no part has that is not the expected one.
  SMALL = 0.04
  # A busy machine adds to these; files are loaded on offload threads.
  ALWAYS = %i[ready running preempted queued gc offloaded].freeze

  # @return [Array<Hash>] the lines of the access log
  def logged(app, **options, &)
    serving(app, lint: false, log_format: :json, **options, &)
    output.string.lines.map { |line| JSON.parse(line, symbolize_names: true) }
          .select { |line| line[:event] == "request" }
  end

  # @return [Hash{Symbol => Float}] the account of one request that runs the block
  def account(**options, &)
    app = lambda do |_env|
      yield
      [200, {}, ["a"]]
    end
    logged(app, **options) { get("/") }.last.fetch(:account)
  end

  def assert_spent(part, account)
    assert_operator account.fetch(part), :>=, DELAY / 2, account.inspect
    others = account.except(part, *ALWAYS)

    assert_operator others.values.sum, :<, SMALL, account.inspect
  end

  def test_waiting_for_a_task_is_a_lock_and_its_time_counts_beside
    line = logged(lambda { |_env|
      Heddle.async { sleep DELAY }.value
      [200, {}, ["a"]]
    }) { get("/") }.last

    assert_spent :lock, line[:account]
    assert_operator line[:tasks][:sleep], :>=, DELAY / 2
  end

  # The delay is between `least`, the seconds for which the client has waited, and `most`, for which it knew of it.
  def assert_between(least, most, part, line)
    found = line.fetch(:account).fetch(part)

    assert_operator found, :>=, least - 0.005, line.inspect
    assert_operator found, :<=, most + 0.001, line.inspect
    assert_parts_add_up line
  end

  # No part is negative, and they are the time since the first byte, which `duration` begins later than.
  def assert_parts_add_up(line)
    parts = line.fetch(:account)

    assert_operator parts.values.min, :>=, 0, line.inspect
    assert_operator parts[:other], :<, 0.001, line.inspect
    assert_operator parts.except(:proxy).values.sum, :>=, line[:duration] - 0.001, line.inspect
    assert_operator parts.except(:proxy, :received).values.sum, :<=, line[:duration] + 0.001, line.inspect
  end

  # Sends a request in two pieces, of which the second comes after the delay.
  # @return [Array(Float, Float, Hash)] for how long the second piece and all of the request took, and the log's line
  def request_in_pieces(first, second, app = text)
    least = most = nil
    line = logged(app) do
      socket = connect
      began = now
      socket.write(first)
      until_statistics { |found| found[:transit] == 1 }
      least = now
      sleep DELAY
      least = now - least
      socket.write(second)
      read_all(socket)
      most = now - began
    end.last
    [least, most, line]
  end

  def test_a_head_in_parts_is_received
    least, most, line = request_in_pieces("GET / HTTP/1.1\r\n", "Host: a\r\nConnection: close\r\n\r\n")

    assert_between least, most, :received, line
  end

  def test_a_body_in_parts_is_received
    waited = nil
    app = lambda do |env|
      waited = env["puma.request_body_wait"]
      [200, {}, ["a"]]
    end
    head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
    least, most, line = request_in_pieces("#{head}a", "b", app)

    assert_between least, most, :received, line
    assert_operator waited, :>=, (DELAY * 1000) - 1
  end

  def test_a_request_that_may_not_begin_is_queued
    app, arrived, release = waiting_application
    least = most = nil
    lines = logged(app, max_requests: 1) do
      first = Thread.new { get("/first") }
      arrived.pop
      began = now
      second = Thread.new { get("/second") }
      until_statistics { |found| found[:waiting] == 1 }
      least = now
      sleep DELAY
      least = now - least
      2.times { release << true }
      [first, second].each(&:join)
      most = now - began
    end

    assert_between least, most, :queued, lines.find { |line| line[:target] == "/second" }
  end

  def test_a_slow_client_of_a_streamed_response_is_a_part
    pieces = 0
    body = Enumerator.new { |to| 600.times { (to << ("x" * 65_536)) && pieces += 1 } }
    line = logged(->(env) { [200, {}, env["PATH_INFO"] == "/" ? body : []] }) do
      socket = connect
      socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      until_at_rest { pieces }
      sleep DELAY
      read_all(socket)
    end.last

    assert_operator line[:account][:client], :>=, DELAY - 0.01
  end

  # Until what the block says stays the same while the loop serves other requests.
  def until_at_rest
    before = nil
    until before == yield && before.positive?
      before = yield
      3.times { get("/other") }
    end
  end

  def test_the_parts_explain_the_time
    requests = logged(lambda { |env|
      sleep env["PATH_INFO"].delete("/").to_f / 1000
      [200, {}, ["a"]]
    }) { (1..20).map { |ms| Thread.new { get("/#{ms}") } }.each(&:join) }

    requests.each do |line|
      sum = line[:account].values.sum

      assert_in_delta line[:duration], sum, 0.001
      assert_operator line[:account][:other], :<, 0.005
    end
  end

  def test_http2_has_the_same
    line = logged(->(_env) { [200, {}, [sleep(DELAY).to_s]] }) { exchange_together(connect, 1) }.last

    assert_spent :sleep, line[:account]
  end

  def test_the_time_since_the_proxy_is_a_part_of_its_own
    { "t=%.3f" => 1, "%d" => 1000, "t=%d" => 1_000_000 }.each do |format, unit|
      start = Time.now.to_f - 2
      line = logged(text) { get("/", "X-Request-Start" => format(format, start * unit)) }.last

      assert_includes 1.9..(Time.now.to_f - start + 1), line[:account][:proxy]
    end
  end

  def test_a_time_of_the_proxy_that_cannot_be_is_unknown
    [Time.now.to_f + 60, Time.now.to_f - 660, 0, "t=-1", "x" * 200].each do |start|
      line = logged(text) { get("/", "X-Request-Start" => start.to_s) }.last

      refute_includes line[:account], :proxy, start.to_s
    end
    line = logged(text, trusted_proxies: []) { get("/", "X-Request-Start" => (Time.now.to_f - 1).to_s) }.last

    refute_includes line[:account], :proxy
  end

  def test_the_application_reads_its_account
    found = nil
    account do
      sleep DELAY
      found = Heddle.current_request.account
    end

    assert_operator found[:sleep], :>=, DELAY / 2
    assert_operator found[:total], :>=, found[:sleep]
    assert_equal 1, found[:waits][:sleep]
  end

  def test_part_that_is_not_a_wait_is_rejected
    error = assert_raises(ArgumentError) { Heddle::Account.wait_for(Heddle::Account::PROXY) { flunk } }

    assert_match(/\Apart 0 of a time account is not a wait \(known: 1 to \d+\)\z/, error.message)
  end

  def test_a_thread_counts_what_it_computes_and_what_adapters_name
    %i[thread single].each do |mode|
      found = nil
      line = logged(lambda { |_env|
        Heddle::Account.wait_for(Heddle::Account::QUERY) { sleep DELAY }
        sleep DELAY
        found = Heddle.current_request.account
        [200, {}, ["a"]]
      }, mode:) { get("/") }.last

      assert_operator line[:account][:query], :>=, DELAY / 2
      assert_operator line[:account][:thread], :>=, DELAY / 2
      assert_parts_add_up line
      assert_operator found[:query], :>=, DELAY / 2
    end
  end

  def test_thread_counts_its_garbage_collections
    line = logged(lambda { |_env|
      before = GC.total_time
      GC.start until (GC.total_time - before) / 1e9 >= DELAY
      [200, {}, ["a"]]
    }, mode: :thread) { get("/") }.last

    assert_operator line[:account][:gc], :>=, DELAY - 0.005, line.inspect
    assert_parts_add_up line
  end

  def test_thread_that_computes_while_its_fiber_is_ready_spends_no_negative_time
    engine = nil
    pieces = Enumerator.new { |body| 10.times { body << Array.new(20_000, &:to_s).last } }
    serving(->(_env) { [200, {}, pieces] }, mode: :thread) do
      engine = server.engine
      get("/")
    end
    parts = engine.endpoints.fetch("GET /")

    assert_operator parts.fetch(:thread, 0), :<, 60, parts.inspect
  end

  def test_paths_of_the_option_have_it_in_server_timing
    serving(->(_env) { [200, { "server-timing" => "db;dur=1" }, [sleep(DELAY).to_s]] }, account: ["/a"]) do
      assert_match(/\Adb;dur=1, .*sleep;dur=([2-9]\d|\d{3,})\.\d, .*total;dur=/, get("/a/b")["server-timing"])
      assert_equal "db;dur=1", get("/ab")["server-timing"]
    end
  end

  def test_without_accounts_there_is_none
    found = true
    line = logged(lambda { |_env|
      found = Heddle.current_request
      [200, {}, ["a"]]
    }, account: []) { get("/") }.last

    refute_includes line, :account
    assert_nil found
  end

  def test_metrics_have_each_part_and_endpoints_those_of_slow_requests
    engine = nil
    serving(lambda { |env|
      sleep DELAY if env["PATH_INFO"] == "/slow/7"
      [200, {}, ["a"]]
    }) do
      engine = server.engine
      get("/")
      get("/slow/7")
    end
    counts, sum = engine.spent[:sleep]

    assert_equal 1, counts.sum
    assert_operator sum, :>=, DELAY / 2
    assert_operator engine.endpoints["GET /slow/:id"][:sleep], :>=, DELAY / 2
  end

  # Clients choose paths: whatever they send, the labels are few, and can be written.
  def test_endpoints_are_bounded_and_have_no_odd_bytes
    words = ("aa".."zz").first(60).map { |word| "/#{word}" }
    odd = ["/\xFF\xFE", "/\"\\", "/#{"x" * 2_000}", "/a\x80b", "/%00", "http://b/c"]
    engine = nil
    serving(->(_env) { [200, {}, [sleep(0.002).to_s]] }, lint: false) do
      engine = server.engine
      socket = connect
      (odd + words).each do |path|
        socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n".b)
        read_answer(socket)
      end
    end
    labels = engine.endpoints.keys

    assert_equal 50, labels.size
    assert_includes labels, "other"
    assert_empty labels.grep_v(/\A[ -~]{1,160}\z/n)
  end

  def test_outside_of_a_request_there_is_none
    assert_nil Heddle.current_request
    Heddle.run { assert_nil Heddle.current_request }
  end
end
