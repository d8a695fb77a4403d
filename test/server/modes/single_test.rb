# frozen_string_literal: true

require "test_helper"
require "open3"
require "pty"
require "support/served_process"
require_relative "../server_helpers"

# `--mode single`: one request at a time, on the thread that runs the server.
class SingleModeTest < Minitest::Test
  include ServerHelpers

  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  def test_requests_run_one_by_one_on_the_thread_that_runs_the_server
    seen = Thread::Queue.new
    running = 0
    app = lambda do |_env|
      running += 1
      seen << [Thread.current, Fiber.scheduler, Fiber.current.blocking?, running]
      sleep(0.01)
      running -= 1
      [200, {}, ["done"]]
    end
    serving(app, mode: :single) { Array.new(5) { Thread.new { get("/") } }.each(&:join) }

    assert_equal [[@thread, nil, true, 1]], Array.new(5) { seen.pop }.uniq
  end

  def test_a_request_may_take_any_time_and_no_other_one_is_refused_meanwhile
    app, arrived, release = waiting_application("done")
    serving(app, mode: :single, queue_timeout: 0.01, write_timeout: 0.01, idle_timeout: 0.01) do
      sockets = Array.new(3) { connect.tap { |socket| socket.write(GET) } }
      arrived.pop(timeout: PATIENCE)
      until_statistics { |found| found[:waiting] == 2 }
      # Longer than any of the limits.
      assert_nil sockets.first.wait_readable(0.3)
      3.times { release << true }

      assert_equal(["done"] * 3, sockets.map { |socket| read_answer(socket)[-4..] })
    end
  end

  def test_stopping_at_once_interrupts_the_request
    arrived = Thread::Queue.new
    app = lambda do |_env|
      arrived << true
      sleep
    end
    start(app, mode: :single)
    socket = connect.tap { |one| one.write(GET) }
    arrived.pop(timeout: PATIENCE)
    server.stop(now: true)

    refute wait_for_end
    assert_operator read_all(socket), :start_with?, "HTTP/1.1 503 "
  end

  # As a developer does it: a terminal, a breakpoint, a look at a variable, and Ctrl-C.
  def test_a_breakpoint_has_the_terminal
    Dir.mktmpdir do |folder|
      config = File.join(folder, "config.ru")
      File.write(config, <<~RUBY)
        require "irb"
        run(lambda do |env|
          secret = 6 * 7
          binding.irb(show_code: false) if env["PATH_INFO"] == "/debug"
          [200, {}, ["secret \#{secret}"]]
        end)
      RUBY
      command = [*ServedProcess::HEDDLE, "serve", config, "--mode", "single", "-p", "0", "--no-access-log"]
      output, input, pid = PTY.spawn({ "TERM" => "dumb", "IRBRC" => File::NULL, "HOME" => folder }, *command)
      @port = until_printed(output, %r{http://\w+:(\d+)})[1].to_i
      answer = Thread.new { get("/debug").body }
      until_printed(output, /^irb.*>/)
      input.puts("secret += 1")
      until_printed(output, /=> 43/)
      input.puts("exit")

      assert_equal "secret 43", answer.value
      input.write("\x03")

      assert_predicate Process.wait2(pid).last, :success?
    ensure
      [output, input].compact.each(&:close)
    end
  end

  def until_printed(output, pattern)
    @printed ||= +""
    Timeout.timeout(PATIENCE * 2) do
      until (match = pattern.match(@printed))
        @printed << output.readpartial(4_096)
      end
      @printed = match.post_match
      match
    end
  end
end
