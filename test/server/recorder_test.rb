# frozen_string_literal: true

require "test_helper"
require "json"
require "tmpdir"
require_relative "server_helpers"

# A file about what the requests of the last seconds did, where one was slow.
class RecorderTest < Minitest::Test
  include ServerHelpers

  # Seconds. A busy machine takes less for what is not meant to be slow.
  LIMIT = 1
  SLOW = LIMIT + 0.05
  Trace = Heddle::Server::Recorder::Trace

  # @return [Hash] the one trace that the server has written
  def trace_of(app, **options)
    Dir.mktmpdir do |folder|
      with_tmpdir(folder) do
        serving(app, lint: false, slow_request: LIMIT, log_format: :json, **options) do
          yield
          wait_for_file(folder)
        end
      end
      files = Dir["#{folder}/heddle-trace-*.json"]

      assert_equal 1, files.size, output.string
      assert_equal 0o600, File.stat(files.first).mode & 0o777
      return JSON.parse(File.read(files.first), symbolize_names: true)
    end
  end

  # It is written beside the loop.
  def wait_for_file(folder)
    limit = now + PATIENCE
    sleep 0.01 while Dir["#{folder}/heddle-trace-*.json"].empty? && now < limit
  end

  def with_tmpdir(folder)
    before = ENV.fetch("TMPDIR", nil)
    ENV["TMPDIR"] = folder
    yield
  ensure
    ENV["TMPDIR"] = before
  end

  # As the format's description says: "Trace Event Format", complete events, flow events and metadata.
  def assert_schema(trace)
    assert_equal %i[displayTimeUnit traceEvents], trace.keys.sort
    trace[:traceEvents].each do |event|
      assert_kind_of String, event[:name]
      assert_kind_of Integer, event[:pid]
      assert_kind_of Integer, event[:tid]
      case event[:ph]
      when "X"
        assert_operator event[:ts], :>=, 0
        assert_operator event[:dur], :>=, 0
        assert_kind_of Hash, event[:args]
      when "s", "f"
        assert_kind_of Integer, event[:id]
        assert_kind_of Numeric, event[:ts]
      when "M" then assert_kind_of String, event[:args][:name]
      else flunk "unknown phase #{event[:ph]}"
      end
    end
    flows = trace[:traceEvents].select { |event| %w[s f].include?(event[:ph]) }

    assert_equal flows.count { |event| event[:ph] == "s" }, flows.count { |event| event[:ph] == "f" }
  end

  def stretches(trace, name) = trace[:traceEvents].select { |event| event[:ph] == "X" && event[:name] == name.to_s }

  def test_slow_request_writes_its_waits_with_file_and_line_and_no_query
    line = __LINE__ + 1
    trace = trace_of(->(_env) { [200, {}, [sleep(SLOW).to_s]] }) { get("/a?secret=b") }

    assert_schema trace
    slept = stretches(trace, :sleep).first

    assert_operator slept[:dur], :>=, LIMIT * 1_000_000
    assert_operator slept[:args][:place], :end_with?, "recorder_test.rb:#{line}"
    refute_includes JSON.generate(trace), "secret"
    assert(trace[:traceEvents].any? { |event| event[:ph] == "M" && event[:args][:name] == "GET /a" })
  end

  def test_slow_request_that_only_computes_has_its_last_stretch
    app = lambda do |_env|
      limit = now + SLOW
      nil while now < limit
      [200, {}, ["a"]]
    end
    trace = trace_of(app, protect: []) { get("/a") }

    assert_operator stretches(trace, :running).sum { |event| event[:dur] }, :>=, LIMIT * 1_000_000
  end

  def test_fast_requests_write_nothing
    Dir.mktmpdir do |folder|
      with_tmpdir(folder) { serving(text, slow_request: 60) { get("/") } }

      assert_empty Dir["#{folder}/heddle-trace-*"]
    end
  end

  def test_an_arrow_leads_from_the_request_that_has_the_mutex
    mutex = Thread::Mutex.new
    holds = Thread::Queue.new
    comes = Thread::Queue.new
    app = lambda do |env|
      if env["PATH_INFO"] == "/culprit"
        mutex.synchronize do
          holds << true
          comes.pop
          sleep 0.01
        end
      else
        comes << true
        mutex.synchronize { sleep SLOW }
      end
      [200, {}, ["a"]]
    end
    trace = trace_of(app) do
      culprit = Thread.new { get("/culprit") }
      holds.pop
      get("/victim")
      culprit.join
    end

    assert_includes arrows(trace), ["GET /culprit", "GET /victim"]
  end

  def test_an_arrow_leads_from_the_request_that_computed
    begun = Thread::Queue.new
    app = lambda do |env|
      if env["PATH_INFO"] == "/culprit"
        begun.pop
        limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.01
        nil until Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) > limit
      else
        begun << true
        sleep 0.001
        sleep SLOW
      end
      [200, {}, ["a"]]
    end
    trace = trace_of(app, protect: []) do
      culprit = Thread.new { get("/culprit") }
      get("/victim")
      culprit.join
    end

    assert_includes arrows(trace), ["GET /culprit", "GET /victim"]
  end

  def test_stretches_become_tracks_and_arrows_lead_to_what_was_ready
    recorded = [[1.0, 1.1, 7, :running, false, "a.rb:1"], [1.0, 1.1, 8, :ready, false, nil],
                [1.1, 1.2, 8, :running, false, nil], [1.1, 1.3, 7, :query, true, nil], [1.15, 1.16, 0, :gc, false, nil]]
    trace = JSON.parse(JSON.generate(Trace.new(recorded, { 7 => "GET /a", 8 => "GET /b" }, []).to_h),
                       symbolize_names: true)

    assert_schema trace
    assert_equal [["GET /a", "GET /b"]], arrows(trace)
    assert_equal ["stalls", "garbage collections", "GET /a", "GET /b", "tasks of GET /a"],
                 trace[:traceEvents].select { |event| event[:ph] == "M" }.map { |event| event[:args][:name] }
  end

  # @return [Array<Array(String, String)>] the tracks that arrows join
  def arrows(trace)
    events = trace[:traceEvents]
    tracks = events.select { |event| event[:ph] == "M" }.to_h { |event| [event[:tid], event[:args][:name]] }
    flows = events.select { |event| %w[s f].include?(event[:ph]) }.group_by { |event| event[:id] }
    flows.values.map { |pair| pair.sort_by { |event| event[:ph] }.reverse.map { |event| tracks[event[:tid]] } }
  end
end
