# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "openssl"
require "support/native_library"
require "support/prometheus_text"
require "support/web_socket_client"
require_relative "server_helpers"

class MetricsTest < Minitest::Test
  include ServerHelpers

  BOUNDS = Heddle::HTTP::Engine::LATENCY_BOUNDS

  # What the server tells at the moment that the block ends.
  def metrics_of(app, **options)
    start(app, lint: false, **options)
    source = Heddle::Server::Control::SingleProcess.new(server, @log)
    yield
    until_statistics { |found| found[:running] == 0 }
    PrometheusText.parse(@text = Heddle::Server::Metrics.new(source.report).to_s)
  ensure
    stop
  end

  def test_requests_are_counted_by_status_class_for_each_writer
    bodies = { "/array" => [200, {}, ["a"]], "/each" => [301, {}, Enumerator.new { |to| to << "a" }],
               "/call" => [404, {}, lambda(&:close)] }
    found = metrics_of(->(env) { bodies.fetch(env["PATH_INFO"]) }) do
      [*bodies.keys, "/array", "/missing"].each { |path| get(path) }
      exchange("nonsense\r\n\r\n")
    end
    requests = found["heddle_requests_total"]
    counts = %w[2xx 3xx 4xx 5xx].map { |status| requests[{ "worker" => "0", "status" => status }] }

    assert_equal [2, 1, 1, 1], counts
    assert_equal 1, found["heddle_rejected_total"][{ "worker" => "0", "reason" => "malformed" }]
    assert_equal 5, found["heddle_requests_started_total"][{ "worker" => "0" }]
  end

  def test_errors_and_warnings_are_counted_by_event
    found = metrics_of(->(_env) { raise "no" }) { get("/") }

    assert_equal 1, found["heddle_events_total"][{ "worker" => "0", "event" => "request_failed" }]
    report = { workers: [], master: { events: { worker_killed: 2 } } }
    found = PrometheusText.parse(Heddle::Server::Metrics.new(report).to_s)

    assert_equal({ { "worker" => "master", "event" => "worker_killed" } => 2 }, found["heddle_events_total"])
  end

  def test_waits_in_callbacks_of_native_libraries_are_counted_by_library
    callbacks = NativeLibrary.new(File.expand_path("../preemption/support/callbacks.c", __dir__))
    require callbacks.path
    found = metrics_of(->(_env) { CallingBack.call(-> { sleep 0.001 }) && [200, {}, []] },
                       protect: %i[callback_report]) { get("/") }
    waits = found["heddle_callback_waits_total"][{ "worker" => "0", "library" => "callbacks.so" }]

    in_threads? ? assert_nil(waits) : assert_operator(waits, :>=, 1)
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

  def test_durations_have_the_labels_and_buckets_of_opentelemetry
    found = metrics_of(lambda { |env|
      sleep 0.03 if env["PATH_INFO"] == "/slow"
      [env["PATH_INFO"] == "/fails" ? 503 : 200, {}, ["a"]]
    }) do
      %w[/ /slow /fails].each { |path| get(path) }
      exchange("HEAD / HTTP/1.0\r\n\r\n")
      exchange("BREW / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    end
    counts = found["http_server_request_duration_seconds_count"].transform_keys do |labels|
      labels.values_at("http_request_method", "url_scheme", "network_protocol_version", "http_response_status_code",
                       "error_type")
    end

    assert_equal({ ["GET", "http", "1.1", "200", nil] => 2, ["GET", "http", "1.1", "503", "503"] => 1,
                   ["HEAD", "http", "1.0", "200", nil] => 1, ["_OTHER", "http", "1.1", "200", nil] => 1 }, counts)
    slow = found["http_server_request_duration_seconds_bucket"].select do |labels, _|
      labels.values_at("http_request_method", "http_response_status_code") == %w[GET 200]
    end
    assert_equal %w[0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1.0 2.5 5.0 7.5 10.0 +Inf],
                 slow.keys.map { |labels| labels["le"] }
    assert_operator slow.find { |labels, _| labels["le"] == "0.025" }.last, :<, 2
    assert_equal 0, found["http_server_active_requests"].values.sum
  end

  def test_rejections_of_the_queue_are_apart_from_other_503_responses
    worker = { index: 0, rejections: { "400": 2, "503": 7, "599": 1 }, rejected_full: 4, rejected_late: 1 }
    found = PrometheusText.parse(Heddle::Server::Metrics.new(workers: [worker]).to_s)
    reasons = found["heddle_rejected_total"].to_h { |labels, count| [labels["reason"], count] }

    assert_equal({ "queue_full" => 4.0, "queue_timeout" => 1.0, "malformed" => 2.0, "unavailable" => 2.0,
                   "other" => 1.0 }, reasons.select { |_, count| count.positive? })
    assert_equal 0, reasons.fetch("body_limit")
  end

  def test_native_calls_beside_the_loop_are_counted
    found = metrics_of(->(_) { [200, {}, [OpenSSL::PKey::RSA.new(512).n.to_s]] }) { get("/") }
    one = { "worker" => "0" }
    calls, running, threads, missing = found.values_at(*%w[heddle_offload_calls_total heddle_offload_calls
                                                           heddle_offload_threads heddle_offload_functions_missing])
    if in_threads?
      assert_nil calls[one]
    else
      assert_operator calls[one], :>=, 1
      assert_operator found["heddle_offload_return_seconds_total"][one], :>, 0
      libraries = found["heddle_native_calls_total"].select { |labels, _| labels["ran"] == "offloaded" }
      openssl = libraries.find { |labels, _| labels["library"].start_with?("openssl") }

      assert_equal "known_good", openssl.first["class"]
      assert_operator openssl.last, :>=, 1
      assert_equal 0, running[one.merge("state" => "running")]
      assert_operator threads[one], :>=, 0
      assert_equal 0, missing[one]
    end
  end

  def test_a_server_without_offload_has_no_offload_metrics
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
  def test_a_client_that_leaves_before_its_response_is_counted_and_is_not_an_error
    entered = Thread::Queue.new
    go = Thread::Queue.new
    pieces = Array.new(100) { "x" * 100_000 }
    bodies = { "/array" => pieces, "/each" => pieces.each,
               "/call" => ->(stream) { pieces.each { |piece| stream << piece } && stream.close } }
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
    report = Heddle::Server::Control::SingleProcess.new(server, @log).report
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
    text = Heddle::Server::Metrics.new(workers: [{ index: 0, state: "stuck" }],
                                       master: { restarts: 3, wanted: 1, memory: 5, memory_limit: 9 }).to_s
    found = PrometheusText.parse(text)

    assert_equal({ { "worker" => "0" } => 0.0 }, found["heddle_worker_up"])
    assert_equal({ {} => 3.0 }, found["heddle_worker_restarts_total"])
    assert_equal [{ {} => 5.0 }, { {} => 9.0 }],
                 found.values_at("heddle_server_memory_bytes", "heddle_server_memory_limit_bytes")
    assert_empty found["heddle_fibers"]
  end

  def test_a_replaced_worker_is_left_out_beside_its_successor
    # The clock was put back meanwhile.
    workers = [{ index: 0, state: "ending", started: 2.0, uptime: 60.0, fibers: 9 },
               { index: 0, state: "running", started: 1.0, uptime: 6.0, fibers: 5 }]
    found = PrometheusText.parse(Heddle::Server::Metrics.new(workers:).to_s)

    assert_equal({ { "worker" => "0" } => 5.0 }, found["heddle_fibers"])
  end

  def test_pool_metrics_are_as_complete_as_their_librarys_counters
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

  def echoing
    handler = Class.new { def on_message(client, message) = client.write(message * 2) }.new
    ->(env) { (env["rack.upgrade"] = handler) && [101, {}, []] }
  end

  def test_web_sockets_and_their_messages_are_counted
    found = metrics_of(echoing) do
      clients = Array.new(2) { WebSocketClient.new(connect) }
      clients.first.text("four")
      assert_equal "fourfour", clients.first.message
      clients.last.write(3) # there is no such opcode
      assert_equal 1002, clients.last.closing.code
    ensure
      clients&.each { |client| client.io.close }
    end
    one = { "worker" => "0" }
    messages, bytes = %w[messages bytes].map do |name|
      %w[received sent].map { |direction| found["heddle_websocket_#{name}_total"][one.merge("direction" => direction)] }
    end

    assert_equal 2, found["heddle_websockets_opened_total"][one]
    assert_equal [[1, 1], [4, 8]], [messages, bytes]
    assert_equal 1, found["heddle_websocket_failures_total"][one.merge("reason" => "protocol")]
    assert_equal 0, found["heddle_websocket_failures_total"][one.merge("reason" => "slow")]
    assert_equal 1, found["heddle_websocket_closes_total"][one.merge("code" => "1002")]
  end

  def test_messages_by_topic_are_counted_from_the_loop_that_delivers_them
    before = Heddle::PubSub::History.published
    app = lambda do |_|
      topic = "metrics:#{rand(2**64)}"
      both = Array.new(2) { Heddle::PubSub::Subscription.new(Fiber.scheduler, topic, nil) }
      3.times { Heddle::PubSub.publish(topic, "x") }
      both.each { |one| 3.times { one.take } }
      both.first.close
      [200, {}, []]
    end
    found = metrics_of(app, mode: :fiber) { get("/") }
    names = %w[subscribers topics published_total delivered_total dropped_total resets_total closed_total]
    counts = names.map do |name|
      found["heddle_pubsub_#{name}"][{ "worker" => "0" }]
    end

    assert_equal [1, 1, before + 3, 6, 0, 0, 0], counts
  end

  def test_messages_published_through_the_master_are_counted
    found = PrometheusText.parse(Heddle::Server::Metrics.new(workers: [{ index: 0, pubsub_published: 1 }],
                                                             master: { pubsub_published: 2 }).to_s)

    published = found["heddle_pubsub_published_total"].transform_keys { |labels| labels["worker"] }

    assert_equal({ "0" => 1.0, "master" => 2.0 }, published)
  end

  def test_connections_of_the_http_client_are_counted_by_origin
    own = nil
    found = metrics_of(text) do
      own = "http://127.0.0.1:#{port}"
      Thread.new { 2.times { Heddle::HTTP::Client.new(own, proxy: nil).get("/") } }.value
      Heddle::HTTP::Client::OriginRegistry.close_idle
    end
    origin = Heddle::HTTP::Client.statistics.keys.first(50).find { |one| one == own } || "other"
    labels = { "worker" => "0", "origin" => origin }

    assert_operator found["heddle_http_client_requests_total"][labels], :>=, 2
    assert_operator found["heddle_http_client_answer_seconds_total"][labels], :>, 0
  end

  def test_only_so_many_origins_have_series_of_their_own
    statistics = (1..52).to_h { |n| ["http://#{n}", { open: n, requests: 1 }] }
    list = Heddle::Server::WorkerStatus.list_origins(statistics)

    assert_equal [51, { origin: "http://50", open: 50, requests: 1 }], [list.size, list[-2]]
    assert_equal({ origin: "other", open: 103, requests: 2 }, list.last)
  end

  def test_labels_are_escaped
    worker = { index: 0, selector: "a\"b\\c\nd" }
    found = PrometheusText.parse(Heddle::Server::Metrics.new(workers: [worker]).to_s)

    assert_equal "a\\\"b\\\\c\\nd", found["heddle_build_info"].keys.first["selector"]
  end

  private

  # There the application's requests have threads, and need no protection from each other.
  def in_threads? = ENV["HEDDLE_MODE"] == "thread"
end
