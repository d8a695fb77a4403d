# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "socket"
require_relative "../../../benchmark/support/bench"

Bench::Suite.load("http")

# The load generators in C, against a scripted server.
class HTTPBenchmarkNativeTest < Minitest::Test
  OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

  def test_delayed_answers_when_it_is_asked_to_on_listeners_of_its_own
    Bench::DelayServer.run do |port|
      own = Bench::DelayServer.own_port(port)

      refute_equal port, own
      Net::HTTP.start("127.0.0.1", own) do |http|
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        answers = ["/0", "/0.05", "/0"].map { |path| http.get(path).body }

        assert_equal [Bench::DelayServer::BODY] * 3, answers
        assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, :>=, 0.05
      end
    end
  end

  def test_delayed_answers_a_short_delay_before_a_long_one_that_was_asked_for_earlier
    Bench::DelayServer.run do |port|
      long, short = [60, 0.05].map do |delay|
        TCPSocket.new("127.0.0.1", port).tap { |socket| socket.write("GET /#{delay} HTTP/1.1\r\n\r\n") }
      end

      assert_equal [short], IO.select([long, short], nil, nil, 30)&.first
    ensure
      [long, short].each { |socket| socket&.close }
    end
  end

  def test_steady_counts_responses_during_the_measurement_only
    serve(OK) do |port|
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Bench::HTTP::Native.run("steady", port, "/x", 4, 20, 20, 1000) do |said, _|
        assert_equal({ measuring: true }, said.call)
        result = said.call
        took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started

        assert_operator result[:answers], :>, 4
        assert_equal [0, 0], result.values_at(:wrong, :errors)
        # Each of the four connections counts from its first answer to its last, which is less time than all took.
        assert_operator result[:rate], :>, (result[:answers] - 4) / took
        assert_operator result[:p99_ms], :>=, result[:p50_ms]
      end
    end
  end

  def test_steady_counts_answers_that_are_wrong_and_connections_that_break
    serve(OK.sub("200 OK", "503 No")) { |port| assert_operator steady(port)[:wrong], :>, 0 }
    serve("HTTP/1.1 200") { |port| assert_operator steady(port)[:errors], :>, 0 }
  end

  def test_steady_reads_chunked_answers
    serve("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n") do |port|
      result = steady(port)

      assert_operator result[:answers], :>, 4
      assert_equal [0, 0], result.values_at(:wrong, :errors)
    end
  end

  def test_holder_opens_all_and_asks_each_a_second_time
    serve(OK) do |port|
      assert_equal [{ answered: 30, failed: 0, pending: 0, lost: 0 }] * 2, hold(port, 30)
    end
  end

  def test_holder_finds_connections_that_were_closed_while_idle
    serve(OK, answers: 1) do |port|
      first, second = hold(port, 3)

      assert_equal [3, 0, 3], [first[:answered], second[:answered], second[:lost] + second[:failed]]
    end
  end

  def test_a_compile_error_is_reported
    before = ENV.fetch("CC", nil)
    ENV["CC"] = "no-such-compiler"
    File.stub(:exist?, false) do
      error = assert_raises(Bench::Child::Failed) { Bench::HTTP::Native.program("steady") }

      assert_match(/no C compiler/, error.message)
    end
  ensure
    ENV["CC"] = before
  end

  private

  def steady(port)
    Bench::HTTP::Native.run("steady", port, "/x", 4, 10, 10, 1000) do |said, _|
      said.call
      said.call
    end
  end

  def hold(port, connections)
    Bench::HTTP::Native.run("holder", port, "/x", connections) do |said, input|
      first = said.call
      input.puts
      [first, said.call]
    end
  end

  # @param answer [String] to every request; without its blank line the connection is ended after it
  # @param answers [Integer] after so many on a connection it is ended
  def serve(answer, answers: nil)
    server = TCPServer.new("127.0.0.1", 0)
    threads = [Thread.new { loop { threads << talk(server.accept, answer, answers) } }]
    threads.first.report_on_exception = false
    yield server.local_address.ip_port
  ensure
    threads.each(&:kill)
    server.close
  end

  def talk(socket, answer, answers)
    Thread.new do
      Thread.current.report_on_exception = false
      count = 0
      while socket.gets("\r\n\r\n")
        socket.write(answer)
        count += 1
        break if count == answers || !answer.include?("\r\n\r\n")
      end
      socket.close
    end
  end
end
