# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "openssl"
require "support/native_library"
require "support/prometheus_text"
require_relative "server_helpers"

class MetricsTest < Minitest::Test
  include ServerHelpers

  BOUNDS = Heddle::HTTP::Engine::LATENCY_BOUNDS

  # What the server tells at the moment that the block ends.
  def metrics_of(app, **options)
    start(app, lint: false, **options)
    source = Heddle::Server::Control::Alone.new(server, @log)
    yield
    until_statistics { |found| found[:running] == 0 }
    PrometheusText.parse(@text = Heddle::Server::Metrics.new(source.report).to_s)
  ensure
    stop
  end

  def test_requests_are_counted_by_the_class_of_their_status_whoever_writes_the_answer
    bodies = { "/array" => [200, {}, ["a"]], "/each" => [301, {}, Enumerator.new { |to| to << "a" }],
               "/call" => [404, {}, lambda(&:close)] }
    found = metrics_of(->(env) { bodies.fetch(env["PATH_INFO"]) }) do
      [*bodies.keys, "/array", "/missing"].each { |path| get(path) }
      exchange("nonsense\r\n\r\n")
    end
    requests = found["heddle_requests_total"]
    counts = %w[2xx 3xx 4xx 5xx].map { |status| requests[{ "worker" => "0", "status" => status }] }

    assert_equal [2, 1, 1, 1], counts
    assert_equal 1, found["heddle_refused_total"][{ "worker" => "0", "status" => "4xx" }]
    assert_equal 5, found["heddle_requests_started_total"][{ "worker" => "0" }]
  end

  def test_waits_in_callbacks_of_native_libraries_are_counted_by_library
    callbacks = NativeLibrary.new(File.expand_path("../preemption/support/callbacks.c", __dir__))
    require callbacks.path
    found = metrics_of(->(_env) { CallingBack.call(-> { sleep 0.001 }) && [200, {}, []] },
                       protect: %i[callback_report]) { get("/") }

    assert_operator found["heddle_callback_waits_total"][{ "worker" => "0", "library" => "callbacks.so" }], :>=, 1
  end

  def test_the_histogram_has_every_answer_where_it_belongs
    found = metrics_of(lambda { |env|
      sleep 0.05 if env["PATH_INFO"] == "/slow"
      [200, {}, ["a"]]
    }) { %w[/ / /slow].each { |path| get(path) } }
    buckets = found["heddle_request_duration_seconds_bucket"].transform_keys { |labels| labels["le"] }

    assert_equal 3, buckets["+Inf"]
    assert_operator buckets[BOUNDS.reverse.find { |bound| bound < 0.05 && buckets.key?(bound.to_s) }.to_s], :<=, 2
    assert_operator found["heddle_request_duration_seconds_sum"][{ "worker" => "0" }], :>=, 0.05
  end

  def test_native_calls_beside_the_loop_are_counted
    found = metrics_of(->(_) { [200, {}, [OpenSSL::PKey::RSA.new(512).n.to_s]] }) { get("/") }
    one = { "worker" => "0" }

    assert_operator found["heddle_offload_calls_total"][one], :>=, ENV["HEDDLE_MODE"] == "thread" ? 0 : 1
    assert_equal 0, found["heddle_offload_calls"][one.merge("state" => "running")]
    assert_operator found["heddle_offload_threads"][one], :>=, 0
  end

  def test_who_does_not_offload_tells_of_no_threads_for_it
    skip "it is on for the whole process (HEDDLE_TEST_PROTECT)" if Heddle.enabled.include?(:offload)

    assert_nil metrics_of(text, protect: []) { get("/") }["heddle_offload_threads"]&.fetch({ "worker" => "0" }, nil)
  end

  def test_there_are_loop_memory_and_collector
    found = metrics_of(text) { get("/") }
    one = { "worker" => "0" }

    assert_equal 1, found["heddle_worker_up"][one]
    assert_operator found["heddle_fibers"][one], :>, 0
    assert_operator found["heddle_loop_heartbeat_age_seconds"][one], :<, PATIENCE
    assert_operator found["heddle_memory_bytes"][one.merge("kind" => "rss")], :>, 1_000_000
    assert_operator found["heddle_objects_allocated_total"][one], :>, 1_000
    assert_operator found["heddle_connections_accepted_total"][one], :>=, 1
    assert_equal 0, found["heddle_tls_handshakes_total"][one.merge("result" => "failed")]
    assert_equal 1, found["heddle_accepting"][one]
    assert_equal RUBY_VERSION, found["heddle_build_info"].keys.first["ruby"]
  end

  # Ten million bytes are more than any socket holds: the server finds out, whoever writes them.
  def test_a_client_that_leaves_before_its_answer_is_counted_and_is_no_error
    entered = Thread::Queue.new
    go = Thread::Queue.new
    pieces = Array.new(100) { "x" * 100_000 }
    bodies = { "/array" => pieces, "/each" => pieces.each,
               "/call" => ->(stream) { pieces.each { |piece| stream << piece } } }
    app = lambda do |env|
      entered << true
      go.pop
      [200, {}, bodies.fetch(env["PATH_INFO"])]
    end
    found = metrics_of(app) do
      bodies.each_key do |path|
        socket = connect
        socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")
        entered.pop
        socket.close
        go << true
      end
      until_statistics { |now| now[:connections] == 0 }
    end

    assert_equal bodies.size, found["heddle_clients_gone_total"][{ "worker" => "0" }]
    assert_empty errors.string
  end

  def test_a_request_that_runs_is_seen_with_its_age
    app, entered, go = waiting_application
    start(app)
    client = Thread.new { get("/waits") }
    entered.pop
    report = Heddle::Server::Control::Alone.new(server, @log).report
    request = report[:workers].first[:requests].first

    assert_equal ["GET", "/waits", "127.0.0.1", nil], request.values_at(:method, :target, :client, :status)
    assert_operator request[:age], :>, 0
    assert_match(/server_helpers\.rb:\d+:in /, request[:at].join)
    found = PrometheusText.parse(Heddle::Server::Metrics.new(report).to_s)

    assert_equal 1, found["heddle_requests_in_flight"][{ "worker" => "0" }]
    assert_operator found["heddle_oldest_request_seconds"][{ "worker" => "0" }], :>, 0
  ensure
    go&.push(true)
    client&.join
    stop
  end

  def test_a_worker_that_does_not_answer_is_down_and_says_nothing_else
    text = Heddle::Server::Metrics.new(workers: [{ index: 0, state: "stuck" }], master: { restarts: 3, wanted: 1 }).to_s
    found = PrometheusText.parse(text)

    assert_equal({ { "worker" => "0" } => 0.0 }, found["heddle_worker_up"])
    assert_equal({ {} => 3.0 }, found["heddle_worker_restarts_total"])
    assert_empty found["heddle_fibers"]
  end

  def test_of_a_worker_and_the_one_that_replaces_it_the_newer_one_is_told
    workers = [{ index: 0, state: "ending", started: 1.0, fibers: 9 },
               { index: 0, state: "running", started: 2.0, fibers: 5 }]
    found = PrometheusText.parse(Heddle::Server::Metrics.new(workers:).to_s)

    assert_equal({ { "worker" => "0" } => 5.0 }, found["heddle_fibers"])
  end

  def test_pools_are_told_of_as_far_as_their_library_counts
    pools = [{ pool: "things", library: "heddle", limit: 5, size: 3, busy: 2, idle: 1, waiting: 4, created: 3, waits: 9,
               wait_seconds: 1.5, closed: { idle: 1, age: 0 } },
             { pool: "primary writing", library: "active_record", limit: 5, size: 1, busy: 1, idle: 0, waiting: 0 }]
    text = Heddle::Server::Metrics.new(workers: [{ index: 0, state: "running", pools: }]).to_s

    assert_includes text, %(heddle_pool_resources{worker="0",pool="things",library="heddle",state="busy"} 2\n)
    assert_includes text, %(heddle_pool_wait_seconds_total{worker="0",pool="things",library="heddle"} 1.5\n)
    assert_includes text, %(heddle_pool_closed_total{worker="0",pool="things",library="heddle",reason="idle"} 1\n)
    assert_includes text, %(heddle_pool_limit{worker="0",pool="primary writing",library="active_record"} 5\n)
    refute_includes text, %(heddle_pool_waits_total{worker="0",pool="primary writing")
  end

  def test_labels_are_escaped
    worker = { index: 0, selector: "a\"b\\c\nd" }
    found = PrometheusText.parse(Heddle::Server::Metrics.new(workers: [worker]).to_s)

    assert_equal "a\\\"b\\\\c\\nd", found["heddle_build_info"].keys.first["selector"]
  end
end
