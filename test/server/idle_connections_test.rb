# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require_relative "server_helpers"

class IdleConnectionsTest < Minitest::Test
  include ServerHelpers

  COUNT = 10_000
  # Descriptors that the test itself needs beside them.
  SPARE = 200

  # Opens connections, has one request answered on each, and keeps them.
  CLIENT = <<~RUBY
    require "socket"
    count, port = ARGV.map(&:to_i)
    sockets = Array.new(count) do |index|
      # A source address has some 28,000 ports.
      socket = TCPSocket.new("127.0.0.1", port)
      socket.write("GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
      socket
    end
    answered = sockets.count { |socket| socket.gets("\\r\\n\\r\\n")&.start_with?("HTTP/1.1 200") && socket.read(5) == "hello" }
    puts answered
    $stdout.flush
    $stdin.read
  RUBY

  def setup
    @limit = Process.getrlimit(Process::RLIMIT_NOFILE)
    skip "needs #{COUNT + SPARE} descriptors, the limit is #{@limit[1]}" if @limit[1] < COUNT + SPARE
    Process.setrlimit(Process::RLIMIT_NOFILE, @limit[1], @limit[1])
  end

  def teardown
    Process.setrlimit(Process::RLIMIT_NOFILE, *@limit)
  end

  # The fibers that the burst has needed are let go soon after it.
  def at_rest
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    loop do
      now = server.statistics
      return now if now[:fibers] <= 10 || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.001
    end
  end

  def test_ten_thousand_idle_connections_cost_no_fiber
    serving(text, lint: false, access_log: false) do
      IO.popen([RbConfig.ruby, "--disable-gems", "-e", CLIENT, COUNT.to_s, port.to_s], "r+") do |client|
        assert_equal COUNT, client.gets.to_i
        now = at_rest

        assert_equal [COUNT, COUNT], now.values_at(:connections, :idle)
        assert_operator now[:fibers], :<=, 10
        assert_equal "hello", get("/").body, "somebody else is still served"
        client.close_write
      end
    end
  end
end
