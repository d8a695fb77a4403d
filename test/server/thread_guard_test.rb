# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"
require "support/h2_exchanges"
require "support/served_process"
require "tempfile"

# What other threads raise in the thread of a loop that serves reaches no request, and does not end the loop.
class ThreadGuardTest < Minitest::Test
  include ServerHelpers
  include H2Exchanges

  class Intruder < Exception; end

  def test_exception_of_another_thread_reaches_no_waiting_request
    app, arrived, release = waiting_application("own")
    serving(app) do
      requests = Array.new(3) { Thread.new { get("/").body } }
      3.times { arrived.pop }
      @thread.raise(Intruder, "from outside")
      3.times { release << true }

      assert_equal %w[own own own], requests.map(&:value)
    end
    assert_match(/#{__FILE__}:\d+:in .* called Thread#raise with ThreadGuardTest::Intruder \(from outside\)/, all_lines)
  end

  def test_exception_of_another_thread_reaches_no_computing_request
    computing = false
    go = false
    app = lambda do |_env|
      computing = true
      Thread.pass until go
      [200, { "content-type" => "text/plain" }, ["own"]]
    end
    serving(app) do
      request = Thread.new { get("/").body }
      Thread.pass until computing
      @thread.raise(Intruder)
      go = true

      assert_equal "own", request.value
    end
  end

  def test_exception_is_logged_once_for_each_line_that_raises_it
    serving(text) do
      3.times { @thread.raise(Intruder) }
      get("/")
    end

    assert_equal 1, all_lines.scan("Intruder").size
  end

  def test_exception_of_another_thread_reaches_no_stream_of_http2
    app, arrived, release = waiting_application("own")
    serving(app, lint: false) do
      contents = Thread.new { exchange_together(connect, 2) }
      2.times { arrived.pop }
      @thread.raise(Intruder)
      2.times { release << true }

      assert_equal %w[own own], contents.value.values
    end
  end

  def test_kill_of_another_thread_stops_the_server_when_running_requests_are_answered
    app, arrived, release = waiting_application("own")
    serving(app) do
      request = Thread.new { get("/").body }
      arrived.pop
      @thread.kill
      release << true

      assert_equal "own", request.value
      assert @thread.join(PATIENCE)
    end
    assert_includes all_lines, "tried to kill a thread that serves requests. Heddle stops this process"
  end

  def test_exception_that_a_request_raises_in_its_own_thread_is_its_own
    serving(->(_env) { Thread.current.raise("mine") }) { assert_equal "500", get("/").code }

    assert_includes errors.string, "mine"
  end

  def test_request_that_ends_its_own_thread_ends_alone
    ways = { "/kill" => -> { Thread.current.kill }, "/of_class" => -> { Thread.kill(Thread.current) },
             "/exit" => -> { Thread.exit } }
    app = ->(env) { ways.fetch(env["PATH_INFO"], -> { [200, { "content-type" => "text/plain" }, ["own"]] }).call }
    serving(app, lint: false) do
      ways.each_key { |path| assert_raises(EOFError) { get(path) } }

      assert_equal "own", get("/").body
    end
  end

  def test_timeout_in_a_blocking_fiber_ends_that_code
    app = lambda do |_env|
      Fiber.blocking { Timeout.timeout(0.05) { sleep } }
    rescue Timeout::Error
      [200, { "content-type" => "text/plain" }, ["in time"]]
    end
    serving(app) { assert_equal "in time", get("/").body }
  end

  def test_thread_has_its_own_methods_only_while_it_serves
    serving(text) { assert_includes @thread.singleton_methods(false), :raise }

    assert_empty @thread.singleton_methods(false)
  end

  def test_exceptions_reach_the_thread_of_a_loop_that_does_not_serve
    ready = Thread::Queue.new
    thread = Thread.new do
      Heddle.run do
        ready << true
        sleep
      end
    rescue Intruder => e
      e.message
    end
    ready.pop
    thread.raise(Intruder, "from outside")

    assert_equal "from outside", thread.value
  end

  # What requests do to the threads of a server, by their path. The modes have one application.
  HARM = <<~RUBY
    module Harm
      def self.do(path, thread)
        case path
        when "/raise" then thread.raise("from outside")
        when "/exception" then thread.raise(NoMemoryError)
        when "/main" then Thread.main.raise("from outside")
        when "/abort"
          Thread.current.abort_on_exception = true
          Thread.current.report_on_exception = false
          raise "a failing thread"
        when "/later"
          # Between two requests.
          Thread.new { 20.times { sleep(0.01) && Thread.main.raise("from outside") } }
        end
      end

      def self.call(env)
        Thread.new(env["PATH_INFO"], Thread.current) { |path, thread| Harm.do(path, thread) }.join rescue nil
        sleep 0.05
        [200, { "content-type" => "text/plain" }, ["served"]]
      end
    end
    run Harm
  RUBY
  private_constant :HARM

  [%w[--mode fiber], %w[--mode fiber -w 2], %w[--mode fiber --threads 2], %w[--mode ractor]].each do |flags|
    define_method(:"test_threads_of_requests_harm_no_other_request_with_#{flags.join("_").tr("- ", "")}") do
      serve_harm(*flags) do |served|
        %w[/raise /exception /main /abort].each do |path|
          next if path != "/raise" && flags.include?("ractor")

          answers = Array.new(8) { |i| Thread.new { served.get(i == 3 ? path : "/").body } }.map(&:value)

          assert_equal ["served"] * 8, answers, "#{path}\n#{served.output}"
        end

        assert_predicate served, :alive?
        refute_match(/starting another|died/, served.output)
      end
    end
  end

  # In mode single a request runs in the main thread: an exception then is for it.
  %w[thread single].each do |mode|
    define_method(:"test_threads_of_requests_do_not_end_the_server_in_mode_#{mode}") do
      serve_harm("--mode", mode) do |served|
        %w[/main /abort /later].each { |path| 3.times { served.get(path) } }

        body = nil
        100.times { body == "served" ? break : body = served.get("/").body }

        assert_equal "served", body, served.output
      end
    end
  end

  private

  def serve_harm(*flags)
    Tempfile.create(%w[harm .ru]) do |file|
      file.write(HARM)
      file.close
      served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", file.path, "-p", "0", "-e", "production",
                                  "-b", "127.0.0.1", "--reserve-workers", "0", *flags])
      yield served
    ensure
      served&.stop
    end
  end

  def all_lines = output.string + errors.string
end
