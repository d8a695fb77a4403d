# frozen_string_literal: true

# test: smoke

require "test_helper"
require "minitest/mock"
require_relative "../server_helpers"

# `--mode thread`: what an application sees is a thread that has one request.
class ThreadModeTest < Minitest::Test
  include ServerHelpers

  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  LAST = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

  def serving(app, threads: 2, **) = super(app, mode: :thread, threads:, **)

  # An application whose requests wait until they are let go.
  def held(answer = [200, {}, ["done"]])
    @arrived = Thread::Queue.new
    @release = Thread::Queue.new
    lambda do |env|
      @arrived << env
      @release.pop
      answer
    end
  end

  def ask(bytes = GET) = connect.tap { |socket| socket.write(bytes) }

  def test_the_application_sees_a_thread_without_a_scheduler
    seen = Thread::Queue.new
    app = lambda do |_env|
      seen << [Fiber.scheduler, Fiber.current.blocking?, Thread.current]
      [200, {}, []]
    end
    serving(app) { 3.times { get("/") } }
    found = Array.new(3) { seen.pop }

    assert_equal [[nil, true]], found.map { |scheduler, blocking,| [scheduler, blocking] }.uniq
    refute_includes found.map(&:last), @thread
  end

  def test_the_protections_of_fibers_are_off
    before = Heddle.enabled
    serving(text, protect: Heddle::Protection.names - [:handoff]) { assert_equal before, Heddle.enabled }
  end

  def test_a_running_request_is_shown_with_its_place_in_the_application
    line = __LINE__ + 3
    app = lambda do |_env|
      @arrived << true
      @release.pop
      [200, {}, ["done"]]
    end
    held
    serving(app) do
      socket = ask(LAST)
      @arrived.pop(timeout: PATIENCE)
      request = shown_when { |one| one[:at].any? { |place| place.include?("#{__FILE__}:#{line}:") } }

      assert_equal ["GET", "/"], request.values_at(:method, :target)
      @release << true
      read_all(socket)
    end
  end

  # @return [Hash] the first request that runs, once it is as the block wants it
  def shown_when
    status = Heddle::Server::WorkerStatus.new(server, @log)
    deadline = now + PATIENCE
    loop do
      request = status.to_h[:requests].first
      return request if request && yield(request)

      flunk "never: #{request}" if now > deadline
      sleep 0.001
    end
  end

  def test_as_many_requests_run_at_once_as_there_are_threads_and_the_others_wait
    serving(held, threads: 3) do
      sockets = Array.new(5) { ask(LAST) }
      3.times { @arrived.pop(timeout: PATIENCE) }
      found = until_statistics { |now| now[:waiting] == 2 }

      assert_equal [3, :threads, 3], found.values_at(:limit, :limited_by, :running)
      assert_empty @arrived
      5.times { @release << true }

      assert_equal ["done"] * 5, sockets.map { |socket| read_all(socket)[-4..] }
    end
  end

  def test_a_request_that_waits_too_long_for_a_thread_is_rejected
    serving(held, threads: 1, queue_timeout: 0.05) do
      first = ask(LAST)
      @arrived.pop(timeout: PATIENCE)

      assert_operator exchange(LAST), :start_with?, "HTTP/1.1 503 "
      @release << true

      assert_operator read_all(first), :end_with?, "done"
    end
  end

  def test_a_threads_locals_are_its_own_and_the_storage_of_a_request_is_gone_with_it
    app = lambda do |_env|
      seen = [Thread.current[:count], Thread.current.thread_variable_get(:count), Fiber[:count]]
      Thread.current[:count] = seen[0].to_i + 1
      Thread.current.thread_variable_set(:count, seen[1].to_i + 1)
      Fiber[:count] = 1
      [200, {}, [seen.inspect]]
    end
    serving(app, threads: 1) do
      assert_equal ["[nil, nil, nil]", "[1, 1, nil]", "[2, 2, nil]"], Array.new(3) { get("/").body }
    end
  end

  def test_bodies_of_every_size_arrive
    app = lambda do |env|
      body = env["rack.input"].read
      [200, {}, ["#{body.bytesize} #{body.sum}"]]
    end
    serving(app) do
      Net::HTTP.start("127.0.0.1", port) do |http|
        [0, 1, 65_536, 65_537, 3_000_000].each do |size|
          body = "x" * size

          assert_equal "#{size} #{body.sum}", http.post("/", body).body
        end
      end
    end
  end

  def test_a_streamed_body_that_stops_half_way_raises_where_it_is_read
    raised = Thread::Queue.new
    app = lambda do |env|
      env["rack.input"].read
    rescue Heddle::ClientGoneError => e
      raised << e
      raise
    end
    serving(app, stream_bodies: %w[all]) do
      socket = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhalf")
      socket.close_write

      assert_kind_of Heddle::ClientGoneError, raised.pop(timeout: PATIENCE)
      assert_operator read_all(socket), :start_with?, "HTTP/1.1 400 "
    end
  end

  def test_pieces_of_a_body_reach_the_client_as_they_are_made
    lines = Thread::Queue.new
    body = Enumerator.new do |yielder|
      while (line = lines.pop)
        yielder << line
      end
    end
    serving(->(_env) { [200, {}, body] }) do
      socket = ask(LAST)

      assert_match(/200 OK/, Timeout.timeout(PATIENCE) { socket.gets("\r\n\r\n") })
      3.times do |number|
        lines << "line #{number}\n"

        assert_equal "7\r\nline #{number}\n\r\n", Timeout.timeout(PATIENCE) { socket.read(12) }
      end
      lines.close

      assert_equal "0\r\n\r\n", read_all(socket)
    end
  end

  def test_a_stream_is_read_and_written_at_the_same_time
    app = lambda do |_env|
      [200, {}, lambda { |stream|
        stream << "ready\n"
        while (line = stream.gets)
          stream << line.upcase
        end
        stream.close
      }]
    end
    serving(app, lint: false, stream_bodies: %w[all]) do
      socket = ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\na\n\r\n")
      until_read(socket, "A\n")
      socket.write("2\r\nb\n\r\n")
      until_read(socket, "B\n")
      socket.write("0\r\n\r\n")

      assert_operator read_all(socket), :end_with?, "0\r\n\r\n"
    end
    assert_empty errors.string
  end

  def until_read(socket, text)
    found = +""
    Timeout.timeout(PATIENCE) { found << socket.readpartial(1_000) until found.include?(text) }
  end

  def test_a_stream_can_be_written_by_other_threads
    app = lambda do |_env|
      [200, {}, lambda { |stream|
        Array.new(3) { |number| Thread.new { 100.times { stream.write("<#{number}", number.to_s, ">") } } }.each(&:join)
        stream.close
      }]
    end
    serving(app) do
      assert_equal({ "<00>" => 100, "<11>" => 100, "<22>" => 100 }, get("/").body.scan(/<\d+>/).tally)
    end
  end

  def test_a_fast_application_does_not_run_away_from_a_slow_client
    written = 0
    app = lambda do |_env|
      [200, {}, lambda { |stream|
        300.times do
          stream.write("x" * 100_000)
          written += 1
        end
        stream.close
      }]
    end
    serving(app) do
      socket = ask(LAST)
      before = nil
      Timeout.timeout(PATIENCE) do
        until before == written && written > 0
          before = written
          sleep(0.1)
        end
      end

      assert_operator written, :<, 200
      assert_operator read_all(socket).bytesize, :>, 30_000_000
    end
  end

  def test_a_client_that_is_slow_to_take_a_complete_response_holds_no_thread
    large = "x" * 20_000_000
    file = Tempfile.create("heddle").tap { |one| one.write(large) && one.flush }
    bodies = { "/array" => [large], "/file" => Class.new { define_method(:to_path) { file.path } }.new }
    serving(->(env) { [200, {}, bodies.fetch(env["PATH_INFO"], ["quick"])] }, threads: 1, lint: false) do
      slow = bodies.keys.map { |path| ask(LAST.sub("/", path)) }
      until_statistics { |now| now.values_at(:running, :transit, :idle).sum >= 2 && now[:accepted] == 2 }

      assert_equal "quick", get("/").body
      assert_equal [20_000_000] * 2, slow.map { |socket| read_all(socket).split("\r\n\r\n", 2).last.bytesize }
    end
  ensure
    File.unlink(file.path) if file
  end

  def test_a_response_is_sent_as_it_was_when_the_application_returned
    string = +""
    headers = {}
    app = lambda do |env|
      string.replace(env["PATH_INFO"] * 1_000)
      headers["x-path"] = env["PATH_INFO"]
      [200, headers, [string]]
    end
    serving(app, threads: 1, lint: false) do
      answers = exchange((1..50).map { |number| GET.sub("/", "/#{number}") }.join, LAST.sub("/", "/51"))

      assert_equal (1..51).map { |number| "/#{number}" }, answers.scan(/x-path: (\S+)/).flatten
      assert_equal (1..51).map { |number| "/#{number}" * 1_000 },
                   answers.scan(%r{\r\n\r\n((?:/\d+)+)}).flatten
    end
  end

  def test_a_connection_can_be_taken_over
    app = lambda do |env|
      socket = env["rack.hijack"].call
      Thread.new do
        socket.write("raw #{socket.readpartial(10)}")
        socket.close
      end
      [500, {}, ["nobody sees this"]]
    end
    serving(app, lint: false) { assert_equal "raw abc", exchange(GET, "abc") }
    assert_empty errors.string
  end

  def test_an_answer_can_be_taken_over_after_its_head
    app = ->(_env) { [200, { "rack.hijack" => ->(stream) { stream.write("mine") && stream.close } }, []] }
    serving(app, lint: false) { assert_operator exchange(GET), :end_with?, "\r\n\r\nmine" }
  end

  # The error of the hints takes the place of the response.
  def test_file_of_a_response_that_is_not_sent_is_closed
    file = Tempfile.create("heddle")
    body = Class.new { define_method(:to_path) { file.path } }.new
    app = lambda do |env|
      env["rack.early_hints"].call("link" => "a\nb")
      [200, {}, body]
    end
    file.close
    serving(app, early_hints: :on, lint: false) { assert_equal "500", get("/").code }

    refute(ObjectSpace.each_object(File).any? { |one| !one.closed? && one.path == file.path })
  ensure
    File.unlink(file.path)
  end

  def test_early_hints_are_sent_and_response_finished_is_called
    finished = Thread::Queue.new
    app = lambda do |env|
      env["rack.early_hints"].call("link" => "</a.css>; rel=preload")
      env["rack.response_finished"] << ->(_, status, _, error) { finished << [status, error, Fiber.scheduler] }
      [200, {}, ["done"]]
    end
    serving(app, early_hints: :on) do
      answers = exchange(LAST)

      assert_operator answers, :start_with?, "HTTP/1.1 103 "
      assert_operator answers, :end_with?, "done"
    end
    assert_equal [200, nil, nil], finished.pop(timeout: PATIENCE)
  end

  def test_a_bodys_close_is_called_in_the_thread_that_has_made_it
    threads = Thread::Queue.new
    body = Class.new do
      define_method(:each) { |&block| block.call("piece") }
      define_method(:close) { threads << Thread.current }
    end
    app = lambda do |_env|
      threads << Thread.current
      [200, {}, body.new]
    end
    serving(app) { assert_equal "piece", get("/").body }

    assert_same threads.pop(timeout: PATIENCE), threads.pop(timeout: PATIENCE)
  end

  def test_a_failing_request_gets_500_is_logged_and_its_thread_serves_on
    app = lambda do |env|
      case env["PATH_INFO"]
      when "/raise" then raise "on purpose"
      when "/script" then raise NotImplementedError, "on purpose"
      when "/exception" then raise Class.new(Exception), "on purpose"
      when "/headers" then [200, { "x" => "a\r\nb" }, ["evil"]]
      when "/answer" then "nothing"
      when "/body" then [200, {}, Enumerator.new { |_| raise "on purpose" }]
      else [200, {}, ["fine"]]
      end
    end
    serving(app, threads: 1, lint: false) do
      %w[/raise /script /exception /headers /answer].each { |path| assert_equal "500", get(path).code, path }
      refute_operator exchange(LAST.sub("/", "/body")), :end_with?, "0\r\n\r\n"
      assert_equal "fine", get("/").body
    end
    assert_equal 6, errors.string.scan("error in GET").size
  end

  def test_a_thread_that_the_application_ends_is_replaced
    app = ->(env) { env["PATH_INFO"] == "/end" ? Thread.current.kill : [200, {}, ["fine"]] }
    serving(app, threads: 1) do
      assert_equal "", exchange(LAST.sub("/", "/end"))
      assert_equal "fine", get("/").body
    end
  end

  def test_threads_that_the_application_has_ended_are_forgotten
    threads = Heddle::Server::RunnerThreads.new(1)
    threads.start
    served = Thread::Queue.new
    200.times { threads << Struct.new(:run).new.tap { |one| one.define_singleton_method(:run) { Thread.exit } } }
    threads << Object.new.tap { |one| one.define_singleton_method(:run) { served << true } }

    assert served.pop(timeout: PATIENCE)
    assert_operator threads.instance_variable_get(:@threads).size, :<, 50
  ensure
    threads.stop
  end

  def test_an_ended_thread_is_replaced_when_the_system_allows_more_threads_again
    threads = Heddle::Server::RunnerThreads.new(1)
    threads.start
    served = Thread::Queue.new
    failures = Array.new(2) { ThreadError.new("can't create Thread: Resource temporarily unavailable") }
    create = Thread.method(:new)
    Thread.stub(:new, ->(&block) { failures.empty? ? create.call(&block) : raise(failures.pop) }) do
      threads << Object.new.tap { |one| one.define_singleton_method(:run) { Thread.exit } }
      threads << Object.new.tap { |one| one.define_singleton_method(:run) { served << true } }

      assert served.pop(timeout: PATIENCE)
    end
  ensure
    threads.stop
  end

  def test_running_requests_are_answered_when_the_server_stops
    start(held, mode: :thread, threads: 1)
    socket = ask
    waiting = ask
    @arrived.pop(timeout: PATIENCE)
    until_statistics { |now| now[:waiting] == 1 }
    server.stop
    2.times { @release << true }

    assert_operator read_all(socket), :end_with?, "done"
    assert_operator read_all(waiting), :end_with?, "done"
    assert wait_for_end, "every request was answered"
  end

  def test_stopping_at_once_interrupts_what_the_threads_do
    cleaned = Thread::Queue.new
    app = lambda do |_env|
      @arrived << true
      sleep
    ensure
      cleaned << true
    end
    @arrived = Thread::Queue.new
    start(app, mode: :thread, threads: 1)
    socket = ask
    @arrived.pop(timeout: PATIENCE)
    server.stop(now: true)

    refute wait_for_end
    assert_operator read_all(socket), :start_with?, "HTTP/1.1 503 "
    assert cleaned.pop(timeout: PATIENCE)
  end

  def test_a_server_leaves_no_thread_behind
    serving(text) { get("/") }
    before = Thread.list.size
    serving(text, threads: 5) { get("/") }

    assert_equal before, Thread.list.size
  end
end
