# frozen_string_literal: true

require "test_helper"
require "json"
require "minitest/mock"
require "tmpdir"
require_relative "../offload/support/native_calls"
require_relative "server_helpers"

# A file about what the requests of the last seconds did, where one was slow.
class RecorderTest < Minitest::Test
  include ServerHelpers

  # Seconds. A busy machine takes less for what is not meant to be slow.
  LIMIT = 1
  SLOW = LIMIT + 0.05
  Trace = Heddle::Server::Recorder::Trace
  Cause = Heddle::Server::Recorder::Cause
  Snapshot = Heddle::Server::Recorder::Snapshot

  # @return [Hash] the one trace that the server has written for this reason; on a busy machine there may be stalls, too
  def trace_of(app, reason = "slow request", **options)
    Dir.mktmpdir do |folder|
      with_tmpdir(folder) do
        serving(app, lint: false, slow_request: LIMIT, environment: "test", log_format: :json, **options) do
          yield
          wait_for_trace(folder, reason)
        end
      end
      files = traces(folder, reason)

      assert_equal 1, files.size, output.string
      return files.values.first
    end
  end

  # It is written beside the loop.
  def wait_for_trace(folder, reason)
    limit = now + PATIENCE
    sleep 0.01 while traces(folder, reason).empty? && now < limit
  end

  # @return [Hash{String => Hash}] by the file's path
  def traces(folder, reason)
    all = Dir["#{folder}/heddle-trace-*.json"].to_h do |path|
      assert_equal 0o600, File.stat(path).mode & 0o777
      [path, JSON.parse(File.read(path), symbolize_names: true)]
    end
    all.select { |_, trace| trace[:otherData][:reason] == reason }
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
    assert_equal %i[displayTimeUnit otherData traceEvents], trace.keys.sort
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
    assert_includes slept[:args][:place], "recorder_test.rb:#{line} in "
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

  def test_slow_request_that_computes_is_named_with_its_line_and_has_stacks
    need_watch
    line = __LINE__ + 3
    app = lambda do |_env|
      limit = now + SLOW
      1_000.times { |number| number * number } while now < limit
      [200, {}, ["a"]]
    end
    trace = trace_of(app, protect: %i[preempt]) { get("/a") }
    about = trace[:otherData]

    assert_equal ["slow request", "GET /a"], about.values_at(:reason, :request)
    assert_match(/ran for \d+ ms\z/, about[:cause]) # a busy machine may make native code of it
    assert_match(/recorder_test\.rb:#{line} /, about[:place])
    stacks = trace[:traceEvents].select { |event| event[:cat] == "stack" }
                                .select { |event| event[:name].include?("recorder_test.rb:#{line}") }

    assert_operator stacks.sum { |event| event[:dur] }, :>, LIMIT * 500_000
    assert_includes output.string, "slow request of"
  end

  def test_stall_writes_a_file_that_names_its_place
    need_watch
    require NativeCallsLibrary.path
    Heddle::Stalls.reset
    line = __LINE__ + 1
    app = ->(_env) { [200, {}, [NativeCalls.hold(0.3).to_s]] }
    trace = trace_of(app, "stall", protect: %i[stall_report]) { get("/stall") }
    about = trace[:otherData]

    assert_equal ["stall", "GET /stall"], about.values_at(:reason, :request)
    refute about.key?(:culprit), "the request would be named twice"
    assert_match(/\Aa native call that held Ruby's lock .*ran for \d+ ms\z/, about[:cause])
    assert_match(/recorder_test\.rb:#{line} /, about[:place])
    assert(stretches(trace, :stall).any? { |event| event[:args][:request] == "GET /stall" })
  end

  def test_files_that_are_too_many_or_too_large_go_oldest_first
    Dir.mktmpdir do |folder|
      (10..39).each { |number| File.write("#{folder}/heddle-trace-20260101-0000#{number}-000-1.json", "a") }
      File.write("#{folder}/other.json", "a")
      path = Heddle::Server::Recorder::Files.new(folder).write { |io| io << "b" }

      assert_equal 20, Dir["#{folder}/heddle-trace-*"].size
      assert_path_exists path
      assert_path_exists "#{folder}/heddle-trace-20260101-000039-000-1.json"
      File.truncate("#{folder}/heddle-trace-20260101-000038-000-1.json", 101 << 20)
      Heddle::Server::Recorder::Files.new(folder).write { |io| io << "b" }

      assert_equal 3, Dir["#{folder}/heddle-trace-*"].size
      assert_path_exists "#{folder}/other.json"
    end
  end

  def test_files_of_development_are_in_the_folder_tmp
    Dir.mktmpdir do |root|
      assert_equal Heddle::TemporaryFolder.find, Heddle::Server::Recorder::Files.folder("development", root)
      Dir.mkdir("#{root}/tmp")

      assert_equal "#{root}/tmp", Heddle::Server::Recorder::Files.folder("development", root)
      assert_equal Heddle::TemporaryFolder.find, Heddle::Server::Recorder::Files.folder("production", root)
      File.chmod(0o777, "#{root}/tmp")

      assert_equal Heddle::TemporaryFolder.find, Heddle::Server::Recorder::Files.folder("development", root)
    end
  end

  def test_slow_requests_are_searched_for_in_development_by_default
    limits = %w[development test production].to_h do |environment|
      [environment, Heddle::Server::Configuration.new(environment:).slow_request]
    end

    assert_equal({ "development" => 0.5, "test" => 0, "production" => 0 }, limits)
  end

  # Only fibers have stacks.
  def need_watch
    skip "requests run on threads" unless ENV.fetch("HEDDLE_MODE", "fiber") == "fiber"
  end

  def test_recording_that_cannot_be_written_says_why
    serving(text) do
      source = Heddle::Server::Control::SingleProcess.new(server, @log)
      error = assert_raises(Heddle::Server::Control::RejectedError) do
        Heddle::Server::Recorder::Files.stub(:folder, File::NULL) { source.record(0.1) }
      end

      assert_match(%r{\Acan't write the recording: Not a directory - /dev/null/heddle-trace-}, error.message)
    end
  end

  def test_a_stream_that_lasts_is_not_a_slow_request
    line = __LINE__ + 4
    app = lambda do |env|
      next [200, {}, ->(stream) { sleep(SLOW) && stream.close }] if env["PATH_INFO"] == "/stream"

      sleep SLOW
      [200, {}, ["slow"]]
    end
    trace = trace_of(app) { %w[/stream /slow].each { |path| get(path) } } # the first one would pause the second

    assert_match(/recorder_test\.rb:#{line} /, trace.dig(:otherData, :place))
    assert_equal "GET /slow", trace.dig(:otherData, :request)
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
    comes = Thread::Queue.new
    app = lambda do |env|
      if env["PATH_INFO"] == "/culprit"
        comes << true
        begun.pop
        limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.003
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
      comes.pop
      get("/victim")
      culprit.join
    end

    puts JSON.generate(trace[:traceEvents]) if ENV["DEBUG"]
    assert_includes arrows(trace), ["GET /culprit", "GET /victim"]
  end

  # What was recorded, as the extension's copies are read.
  Recorded = Struct.new(:stretches, :samples, :names) do
    def initialize(stretches, samples, names)
      stretches = stretches.map { |one| Snapshot::Stretch.new(*one, *(false if one.size == 6)) }
      super(stretches, samples.map { |one| Snapshot::Sample.new(*one) }, names)
    end

    def name(request) = names.fetch(request)

    def lost = 0
  end

  def trace_from(recorded)
    io = StringIO.new
    Trace.new(recorded, [], Cause.new(recorded), about: { reason: "test" }).write(io)
    JSON.parse(io.string, symbolize_names: true)
  end

  def test_stretches_become_tracks_and_arrows_lead_to_what_was_ready
    recorded = [[1.0, 1.1, 7, :running, false, "a.rb:1"], [1.0, 1.1, 8, :ready, false, nil],
                [1.1, 1.2, 8, :running, false, nil], [1.1, 1.3, 7, :query, true, nil], [1.15, 1.16, 0, :gc, false, nil]]
    trace = trace_from(Recorded.new(recorded, [], { 7 => "GET /a", 8 => "GET /b" }))

    assert_schema trace
    assert_equal [["GET /a", "GET /b"]], arrows(trace)
    assert_equal ["stalls", "garbage collections", "GET /a", "GET /b", "tasks of GET /a"],
                 trace[:traceEvents].select { |event| event[:ph] == "M" }.map { |event| event[:args][:name] }
  end

  NAMES = { 7 => "GET /a", 8 => "GET /b", 9 => "GET /c", **(10..200).to_h { |number| [number, "GET /b"] } }.freeze

  # @return [Array] the reason, the place and the culprit of request 7, which ends at 2.0
  def cause(stretches, samples = [], total: 1.0, **parts)
    found = Cause.new(Recorded.new(stretches, samples, NAMES))
                 .of(7, { **parts, total:, libraries: { "/gems/bcrypt_ext.so" => 1.0 } }, 2.0)
    [found.reason, found.place, found.culprit]
  end

  def test_waits_at_one_place_are_counted
    stretches = Array.new(50) do |index|
      [1.0 + (index * 0.02), 1.02 + (index * 0.02), 7, :query, false, "a.rb:#{index / 49}"]
    end

    assert_equal ["it waited 980 ms (49 times) for the database", "a.rb:0", nil],
                 cause(stretches, query: 1.0, running: 0.1)
  end

  def test_thread_that_has_rubys_lock_is_named
    samples = [[1.1, 1.9, 0, :ruby, false, "t.rb:1", ["t.rb:1"]]]

    assert_equal ["Ruby code in another thread ran for 800 ms", "t.rb:1", nil],
                 cause([[1.0, 1.5, 7, :query, false, "a.rb:1"], [1.5, 2.0, 7, :ready, false, nil]], samples, query: 0.5)
  end

  # The thread had the lock for most of the query, which took longest.
  def test_thread_that_delayed_the_longest_part_is_named
    samples = [[1.0, 1.35, 0, :ruby, false, "t.rb:1", ["t.rb:1"]]]
    stretches = [[1.0, 1.4, 7, :query, false, "a.rb:1"], [1.4, 1.7, 7, :running, false, "a.rb:2"],
                 [1.7, 2.0, 7, :http, false, "a.rb:3"]]

    assert_equal ["Ruby code in another thread ran for 350 ms", "t.rb:1", nil],
                 cause(stretches, samples, query: 0.4, running: 0.3, http: 0.24)
  end

  def test_thread_that_delayed_less_than_another_part_took_is_not_named
    samples = [[1.0, 1.25, 0, :ruby, false, "t.rb:1", ["t.rb:1"]]]
    stretches = [[1.0, 1.4, 7, :query, false, "a.rb:1"], [1.4, 2.0, 7, :running, false, "a.rb:2"]]

    assert_equal ["Ruby code ran for 600 ms", "a.rb:2", nil],
                 cause(stretches, samples, query: 0.4, running: 0.6)
  end

  def test_thread_that_takes_rubys_lock_while_the_request_runs_is_named
    samples = [[1.1, 1.9, 0, :ruby, false, "t.rb:1", ["t.rb:1"]]]

    assert_equal ["Ruby code in another thread ran for 800 ms", "t.rb:1", nil],
                 cause([[1.0, 2.0, 7, :running, false, "a.rb:1"]], samples, running: 1.0)
  end

  def test_stacks_become_slices_that_share_their_outer_frames
    samples = [[1.0, 1.01, 7, :ruby, false, "a.rb:1", %w[b.rb:2 a.rb:1]],
               [1.01, 1.02, 7, :ruby, false, "a.rb:1", %w[c.rb:3 a.rb:1]],
               [1.5, 1.51, 7, :ruby, false, "a.rb:1", %w[a.rb:1]]]
    trace = trace_from(Recorded.new([], samples, { 7 => "GET /a" }))
    slices = trace[:traceEvents].select { |event| event[:cat] == "stack" }

    assert_schema trace
    assert_equal [["a.rb:1", 20_000.0], ["a.rb:1", 10_000.0], ["b.rb:2", 10_000.0], ["c.rb:3", 10_000.0]],
                 slices.map { |event| [event[:name], event[:dur].round] }.sort_by { |name, time| [name, -time] }
  end

  def test_stalls_are_heddles_own_while_it_writes
    own = lambda do
      Heddle::Stalls::Switch.own?(Heddle::Stall.new([:waiting_for_gvl, now, 0.5, "", ""]))
    end

    assert_equal :written, Heddle::Server::Recorder.in_thread { own.call && :written }.value
    assert_raises(KeyError) { Heddle::Server::Recorder.in_thread { raise KeyError }.value }
    refute own.call
  end

  # The thread that writes is not in the child.
  def test_stalls_of_a_process_forked_while_it_writes_are_not_heddles_own
    began, done = Array.new(2) { Thread::Queue.new }
    thread = Heddle::Server::Recorder.in_thread { began.push(true) && done.pop }
    began.pop
    stall = Heddle::Stall.new([:waiting_for_gvl, now, 0.5, "", ""])
    child = fork { exit!(Heddle::Stalls::Switch.own?(stall) ? 1 : 0) }

    assert_predicate Process.wait2(child).last, :success?
    assert Heddle::Stalls::Switch.own?(stall)
  ensure
    done&.close
    thread&.join
  end

  # A thread that computes would keep Ruby's lock for 100 ms each time.
  def test_writer_gives_way_by_time_and_not_at_each_event
    recorded = Recorded.new(Array.new(100) { [1.0, 1.1, 7, :running, false, "a.rb:1"] }, [], { 7 => "GET /a" })
    passes = 0
    Thread.stub(:pass, -> { passes += 1 }) { Heddle::MonotonicClock.stub(:now, now) { trace_from(recorded) } }

    assert_operator passes, :<=, 1
  end

  def test_stretches_and_stacks_that_did_not_fit_are_counted
    Heddle::Account.record(16, [])
    serving(->(_env) { [200, {}, [20.times { sleep 0 }.to_s]] }) { get("/") }

    assert_operator Snapshot.take.lost, :>=, 4
  ensure
    Heddle::Account.record(nil, [])
  end

  def test_waits_that_a_time_limit_has_ended_are_marked
    need_watch
    Heddle::Account.record(64, [])
    queue = Thread::Queue.new
    app = lambda do |_env|
      queue.pop(timeout: 0.01)
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { queue.pop } }
      assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.01) { queue.pop } }
      Heddle.async { queue << true }
      queue.pop(timeout: PATIENCE)
      [200, {}, ["a"]]
    end
    serving(app) { get("/") }
    waits = Snapshot.take.stretches.select { |one| one.part == :lock && !one.task }

    assert_equal [true, true, true, false], waits.map(&:timed_out)
  ensure
    Heddle::Account.record(nil, [])
  end

  def test_line_of_the_application_is_found_below_many_frames_of_gems
    need_watch
    Heddle::Account.record(64, [["/gems/", 2]])
    code = "def self.wait(depth) = depth.zero? ? sleep(0.001) : wait(depth - 1)"
    gem = Module.new.tap { |one| one.module_eval(code, File.join("/gems", "a.rb"), 1) }
    line = __LINE__ + 1
    serving(->(_env) { [200, {}, [gem.wait(100).to_s]] }) { get("/") }
    place = Snapshot.take.stretches.find { |one| one.part == :sleep }.place

    assert_includes place, "recorder_test.rb:#{line} in "
  ensure
    Heddle::Account.record(nil, [])
  end

  # @return [Array<Array(String, String)>] the tracks that arrows join
  def arrows(trace)
    events = trace[:traceEvents]
    tracks = events.select { |event| event[:ph] == "M" }.to_h { |event| [event[:tid], event[:args][:name]] }
    flows = events.select { |event| %w[s f].include?(event[:ph]) }.group_by { |event| event[:id] }
    flows.values.map { |pair| pair.sort_by { |event| event[:ph] }.reverse.map { |event| tracks[event[:tid]] } }
  end
end
