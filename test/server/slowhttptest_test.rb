# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require_relative "server_helpers"

# slowhttptest, the tool that the attacks are named after: all of its clients are cut off by the limit for them, and
# other clients are served meanwhile.
class SlowhttptestTest < Minitest::Test
  include ServerHelpers

  LARGE = "x" * 20_000_000
  # Seconds that the tool gives the server; it ends as soon as the last connection has.
  MOST = 20
  # Seconds of each limit in turn; the others are far away.
  LIMIT = 1
  FAR = 300

  def app
    lambda do |env|
      next [200, {}, [LARGE]] if env["PATH_INFO"] == "/large"

      [200, {}, [env["rack.input"].read.bytesize.to_s]]
    end
  end

  def test_slow_headers_end_by_the_head_limit
    attack(%w[-H -i 1 -x 8], connections: 300, head_timeout: LIMIT)
  end

  def test_slow_bodies_end_by_the_body_limit
    attack(%w[-B -i 1 -x 8 -s 8192], connections: 300, body_grace: LIMIT)
  end

  # The kernel keeps sending the part of a response that it has, even after the server has closed the connection: the
  # tool's clients see the end only when the server resets those that it cuts off.
  def test_slow_readers_end_by_the_write_limit
    flags = %w[-X -w 512 -y 1024 -n 1 -z 32 -k 1]
    attack(flags, connections: 30, path: "/large", most: 6, to_the_end: false, write_timeout: LIMIT)
  end

  private

  def attack(flags, connections:, path: "/", most: MOST, to_the_end: true, **limit)
    tool = need_program("slowhttptest")
    far = { head_timeout: FAR, body_grace: FAR, write_timeout: FAR, idle_timeout: FAR }
    serving(app, access_log: false, **far, **limit) do
      Dir.mktmpdir do |folder|
        command = [tool, "-c", connections.to_s, "-r", "1000", "-l", most.to_s, "-p", "10", *flags,
                   "-g", "-o", File.join(folder, "report"), "-u", "http://127.0.0.1:#{port}#{path}"]
        output, status = running(command, connections, to_the_end) { assert_operator connections_left, :<=, 1 }

        assert_predicate status, :success?, output
        assert_match(/No open connections left/, output) if to_the_end
        assert_available File.readlines(File.join(folder, "report.csv"), chomp: true)
      end
      assert_equal "200", get("/").code
    end
    assert_empty errors.string
  end

  # Runs the tool; the block once it has opened its connections.
  def running(command, connections, to_the_end)
    Open3.popen2e(*command) do |_, output, thread|
      text = Thread.new { output.read }
      wait_until { server.statistics[:accepted] >= connections }
      yield
      assert_predicate thread, :alive?, "the server was faster than the tool" unless to_the_end
      [text.value, thread.value]
    end
  end

  # The columns are seconds, closed, pending, connected, service available.
  def assert_available(lines)
    seconds = lines.drop(1).map { |line| line.split(",").map(&:to_i) }

    refute_empty seconds
    assert_operator seconds.map(&:last).min, :>, 0, lines.join("\n")
  end

  # The tool's probe may be one.
  def connections_left
    wait_until { server.statistics[:connections] <= 1 }
    server.statistics[:connections]
  end

  def wait_until
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    sleep 0.01 until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
  end
end
