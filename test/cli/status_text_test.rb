# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle/cli"

# What `heddle top` draws from a server's status.
class StatusTextTest < Minitest::Test
  StatusText = Heddle::CLI::StatusText
  Screen = Heddle::CLI::Screen

  LATENCIES = [0] * Heddle::HTTP::Engine::LATENCY_BOUNDS.size

  def worker(index = 0, **values)
    { index:, pid: 4_000 + index, state: "running", version: "1", ruby: "3.4.1", selector: "epoll",
      urls: ["http://localhost:1"], running: 1, waiting: 0, idle: 2, lag: 0.001, fibers: 5, memory: 20 << 20,
      gc: { count: 3 }, uptime: 30.0, heartbeat_age: 0.1, latencies: LATENCIES, answers: [0] * 6,
      rejections: { "400": 2, "503": 5 }, protection: %w[offload preempt], preemptions: 3,
      offload: { calls: 40, running: 1, queued: 2, threads: 3 }, stalls: { count: 2, seconds: 0.5 },
      requests: [], slowest: [], **values }
  end

  def stall(cause, ago:, seconds:, **more) = { cause:, ago:, seconds:, request: "GET /x", place: "app.rb:1", **more }

  def request(index)
    { method: "GET", target: "/path/#{index}", age: 1.0 + index, client: "::1", at: ["app.rb:#{index}"] }
  end

  def slow(index) = { request: "GET /slow/#{index}", seconds: index / 10.0, ago: 3.0, status: 200 }

  def draw(*workers, **options)
    @lines = StatusText.new({ workers: }, **options).lines.map { |line| Screen.new.render(line) }
    @lines.join("\n")
  end

  def test_how_long_a_worker_is_up_does_not_depend_on_the_clock_of_the_day
    assert_match(/^ +0 +4000 .* 30\.0 s$/, draw(worker(started: Time.now.to_f + 3_600)))
  end

  # Of four requests in one bucket.
  def test_percentiles_lie_within_their_bucket
    bounds = Heddle::HTTP::Engine::LATENCY_BOUNDS
    bucket = bounds.index { |bound| bound > 0.302 }
    text = draw(worker(latencies: LATENCIES.dup.tap { |counts| counts[bucket] = 4 }))
    middle = (bounds[bucket - 1] + bounds[bucket]) / 2

    assert_includes text, "p50 #{(middle * 1_000).round(1)} ms  p95 "
    beyond = draw(worker(latencies: LATENCIES.dup.tap { |counts| counts[-1] = 1 }))

    assert_includes beyond, "p50 #{(bounds[-2] / 60).floor} min"
  end

  def test_the_overview_describes_the_protections
    text = draw(worker, worker(1, offload: nil))

    assert_match(/^protection: offload, preempt   offloaded 40 \(1 run, 2 wait, 3 threads\)   preempted 6 +stalls 4/,
                 text)
    refute_match(/handed over/, text)
    assert_match(/handed off 3/, draw(worker(handed_off: 3)))
    assert_match(/protection: none/, draw(worker(protection: [], offload: nil, stalls: nil)))
  end

  def test_the_overview_says_on_what_requests_spend_their_time
    spent = { proxy: [[], 9.0], running: [[], 0.3], query: [[], 0.6], other: [[], 0.1], dns: [[], 0.001] }

    assert_match(/^time of requests: query 60 %  running 30 %  other 10 %$/, draw(worker(spent:)))
    refute_match(/time of requests/, draw(worker(spent: {})))
  end

  def test_the_overview_names_functions_that_offload_cannot_intercept
    lacking = { calls: 0, running: 0, queued: 0, threads: 0, missing: %w[dlopen] }

    assert_match(/threads\), not intercepted: dlopen /, draw(worker(offload: lacking), worker(1, offload: lacking)))
    refute_match(/not intercepted/, draw(worker))
  end

  def test_the_endpoints_with_the_longest_stalls_are_those_of_all_workers_together
    history = lambda do |**counts|
      by_endpoint = counts.transform_values { |count, seconds| { count:, seconds: } }
      { count: 1, seconds: 1, by_endpoint: }
    end
    text = draw(worker(stalls: history.call("GET /a": [2, 0.5], "GET /b/:id": [1, 0.7], "GET /c": [1, 0.1])),
                worker(1, stalls: history.call("GET /a": [3, 0.5], "GET /d\e": [1, 0.2])))

    assert_includes text, "since the workers started: stalls, total time\n     5      1.0 s  GET /a\n"
    assert_includes text, "GET /a\n     1   700.0 ms  GET /b/:id\n     1   200.0 ms  GET /d\\x1B"
    refute_includes text, "GET /c"
  end

  def test_pools_are_listed_as_far_as_their_library_counts
    counted = { pool: "things\e[31m", library: "heddle", limit: 5, size: 3, busy: 2, idle: 1, waiting: 4, waits: 9,
                wait_seconds: 1.5, timeouts: 2 }
    shared = { pool: "shared", library: "heddle", limit: 3, max_total: 3, size_total: 2, size: 1, busy: 1, idle: 0,
               waiting: 0 }
    text = draw(worker(pools: [counted]), worker(1, pools: [shared]), columns: 200)

    assert_includes text, "pools\n     0  2 of 3 in use, limit 5, 4 waiting; waits: 9, 1.5 s in total; " \
                          "timeouts: 2  things\\x1B[31m (heddle)\n"
    assert_includes text, "\n     1  1 of 1 in use, limit 3 (all workers: 2, limit 3), 0 waiting  shared (heddle)"
    refute_match(/^pools$/, draw(worker(pools: [])))
  end

  def test_a_stall_without_a_place_has_no_gap_in_its_line
    text = draw(worker(stalls: { count: 1, seconds: 0.1, recent: [stall("ruby", ago: 0.4, seconds: 0.1, place: nil)] }))

    assert_match(/ ruby, 400\.0 ms ago$/, text)
  end

  def test_stalls_of_the_last_minute_are_listed_the_latest_first
    recent = [stall("native_with_gvl", ago: 2.9, seconds: 1.5), stall("ruby", ago: 0.4, seconds: 0.3)]
    text = draw(worker(stalls: { count: 2, seconds: 1.8, recent: }), columns: 80)

    assert_match(%r{the last minute, newest first\n +0 +300\.0 ms +GET /x +ruby, app\.rb:1, 400\.0 ms ago\n}, text)
    assert_match(%r{ +0 +1\.5 s +GET /x +native with gvl, app\.rb:1, 2\.9 s ago}, text)
  end

  def test_requests_are_listed_the_oldest_and_the_slowest_first
    text = draw(worker(requests: [request(1), request(2)]), worker(1, slowest: [slow(1), slow(9)]))

    assert_match(%r{oldest first\n +0 +3\.0 s  GET /path/2 +app\.rb:2\n +0 +2\.0 s  GET /path/1}, text)
    assert_match(%r{slowest responses.*\n +1 +900\.0 ms  GET /slow/9 +200, 3\.0 s ago\n +1 +100\.0 ms  GET /}, text)
  end

  def test_text_from_a_client_is_escaped_for_the_terminal
    text = draw(worker(requests: [{ **request(1), target: "/\e[2J" }], slowest: [{ **slow(1), request: "GET /\e]0;" }],
                       stalls: { count: 1, seconds: 0.1,
                                 recent: [stall("ruby", ago: 1.0, seconds: 0.1, request: "GET /\a")] }))

    refute_match(/[\e\a]/, text)
  end

  # However much there is to be told, it is no more than fits, and each list has something of its own.
  def test_text_from_a_server_is_escaped_for_the_terminal
    screen = Heddle::CLI::Screen.new(columns: 9, colour: true)

    assert_equal "a\\x1B[2Jb", screen.render("a\e[2Jb")
    assert_equal "\e[31m\\x9Bin 'x\e[0m", screen.render([["\u009Bin 'x' of a place", :bad]])
  end

  def test_a_small_terminal_has_something_of_everything
    stalls = Array.new(9) { |i| stall("ruby", ago: i + 1.0, seconds: 0.2) }
    workers = Array.new(2) do |i|
      worker(i, requests: Array.new(30) { |n| request(n) }, slowest: Array.new(16) { |n| slow(n) },
                stalls: { count: 9, seconds: 1.8, recent: stalls })
    end
    [[24, 80], [23, 80], [40, 100], [60, 200]].each do |rows, columns|
      screen = Screen.new(columns:)
      lines = StatusText.new({ workers: }, rows: rows - 1, columns:).lines.map { |line| screen.render(line) }
      text = lines.join("\n")

      assert_operator lines.size, :<=, rows - 1
      assert_operator lines.map(&:length).max, :<=, columns
      ["GET /path/29", "GET /slow/15", "ruby, app.rb:1", "… and"].each do |part|
        assert_includes text, part
      end
    end
  end

  def test_many_workers_leave_room_for_their_requests
    workers = Array.new(32) { |i| worker(i, requests: [request(i)]) }
    lines = StatusText.new({ workers: }, rows: 23, columns: 80).lines

    assert_operator lines.size, :<=, 23
    assert_includes lines, "        … and 28 more"
    assert_includes lines.map { |line| Screen.new.render(line) }.join, "GET /path/31"
  end

  def test_server_without_a_worker_says_so_in_place_of_tables
    text = draw

    assert_equal "Heddle #{Heddle::VERSION}", @lines.first
    assert_match(/^no worker runs: the application is being loaded/, text)
    assert_equal 3, @lines.size
  end

  def test_a_worker_that_does_not_respond_is_shown
    text = draw({ index: 0, pid: 3, state: "stuck", problem: "does not answer" },
                { index: 1, pid: nil, state: "starting" })

    assert_match(/stuck/, text)
    assert_includes text, "! worker 0: does not answer"
  end

  def test_colours_need_a_capable_terminal_and_no_no_color
    line = [["red", :bad], " plain"]

    assert_equal "\e[31mred\e[0m plain", Screen.new(colour: true).render(line)
    assert_equal "\e[31mre\e[0m", Screen.new(colour: true, columns: 2).render(line)
    assert_equal "red plain", Screen.new.render(line)
    terminal = Struct.new(:tty?).new(true)

    assert Screen.coloured?(terminal, {})
    refute Screen.coloured?(terminal, { "NO_COLOR" => "1" })
    refute Screen.coloured?(terminal, { "TERM" => "dumb" })
    refute Screen.coloured?(StringIO.new, {})
  end
end
