# frozen_string_literal: true

# test: long

require "test_helper"
require "fileutils"
require "io/nonblock"
require "socket"
require "support/served_process"
require "tmpdir"

# The program that should read the server's output, such as a container's log driver, hangs: the pipes are full from the
# start.
class UnreadOutputTest < Minitest::Test
  PATIENCE = 60
  # Linux's fcntl(2); one page is the least.
  F_SETPIPE_SZ = 1031
  PIPE_SIZE = 4_096
  APP = <<~RUBY
    run do |env|
      case env["PATH_INFO"]
      when "/fails" then raise "planted"
      when "/speaks" then env["rack.errors"].puts("planted\n" * 50_000)
      end
      [200, { "x-worker" => Process.pid.to_s }, []]
    end
  RUBY
  WAYS = { "of_one_process" => 0, "with_workers" => 2 }.freeze

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    File.write(File.join(@folder, "config.ru"), APP)
    @pipes = Array.new(2) { full_pipe }
  end

  def teardown
    kill if @pid
    @pipes.flatten.each(&:close)
    FileUtils.remove_entry(@folder)
  end

  WAYS.each do |way, workers|
    define_method(:"test_a_server_#{way}_starts_serves_and_ends_while_its_output_is_not_read") do
      start(workers)

      assert_equal %w[200 500 500 200], %w[/ /fails /fails /speaks].map { |path| get(path)[0] }
      Process.kill("TERM", @pid)

      assert_predicate await_end, :success?
    end

    define_method(:"test_a_server_#{way}_says_how_many_lines_are_lost_when_its_output_is_read_again") do
      start(workers)
      16.times { get("/speaks") }
      found = Thread.new { @pipes.last.first.each_line.find { |line| line.include?("lost") } }
      wait_until { get("/speaks") && !found.alive? }

      assert_match(/\A\S+ lost \d+ lines of the log: it is read too slowly\n\z/, found.value)
    end

    define_method(:"test_a_server_#{way}_leaves_its_pipes_blocking_for_others") do
      start(workers)
      get("/fails")

      assert_equal([false, false], @pipes.map { |_, writer| writer.nonblock? })
    end
  end

  def test_a_dead_worker_is_replaced_while_the_output_is_not_read
    start(1)
    former = get("/")[1]
    Process.kill("KILL", Integer(former))
    wait_until { ![former, nil].include?(get("/")[1]) }
    Process.kill("TERM", @pid)

    assert_predicate await_end, :success?
  end

  def test_a_reload_replaces_workers_while_the_output_is_not_read
    start(1)
    former = get("/")[1]
    Process.kill("HUP", @pid)
    wait_until { ![former, nil].include?(get("/")[1]) }
  end

  def test_a_new_master_takes_over_while_the_output_is_not_read
    start(1, "--pidfile", "pid")
    Process.kill("USR2", @pid)

    assert_predicate await_end, :success?
    @pid = Integer(File.read(File.join(@folder, "pid")))

    assert_equal "200", get("/")[0]
    Process.kill("TERM", @pid)
    wait_until { gone? }
  end

  private

  # Ruby makes pipes non-blocking, other programs don't.
  def full_pipe
    reader, writer = IO.pipe
    writer.fcntl(F_SETPIPE_SZ, PIPE_SIZE)
    writer.write("\n" * PIPE_SIZE)
    writer.nonblock = false
    [reader, writer]
  end

  def start(workers, *arguments)
    manager = Socket.new(:UNIX, :DGRAM)
    manager.bind(Socket.sockaddr_un(File.join(@folder, "notify")))
    manager.timeout = PATIENCE
    output, errors = @pipes.map(&:last)
    @pid = spawn({ "NOTIFY_SOCKET" => File.join(@folder, "notify"), "RACK_ENV" => "production" },
                 *ServedProcess::HEDDLE, "serve", "-b", "unix:server", "-w", workers.to_s, "--reserve-workers", "0",
                 *arguments, chdir: @folder, in: File::NULL, out: output, err: errors, pgroup: true)
    @group = @pid
    nil until manager.recv(1_000).include?("READY=1")
  ensure
    manager&.close
  end

  # => status, worker; nothing while no worker serves
  def get(path)
    socket = UNIXSocket.new(File.join(@folder, "server"))
    socket.timeout = PATIENCE
    socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    head = socket.read
    [head[%r{\AHTTP/1.1 (\d+) }, 1], head[/^x-worker: (\d+)/, 1]]
  rescue Errno::ECONNRESET, Errno::EPIPE, Errno::ECONNREFUSED
    []
  ensure
    socket&.close
  end

  def await_end
    wait_until { @status = Process.wait2(@pid, Process::WNOHANG)&.last }
    @status
  end

  def gone?
    Process.kill(0, @pid)
    false
  rescue Errno::ESRCH
    true
  end

  def wait_until
    deadline = now + PATIENCE
    until yield
      flunk "not within #{PATIENCE} s" if now > deadline
      sleep 0.001
    end
  end

  def kill
    Process.kill("KILL", -@group)
    Process.wait(@group)
  rescue Errno::ESRCH, Errno::ECHILD
    nil # it has ended
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
