# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "support/prometheus_text"
require "support/served_process"
require "tmpdir"

# The disk of the bodies, of the log or of the error output is full: requests that need none of it are answered, and the
# server continues when there is room again. A limit on the size of files (EFBIG) stands for a small disk.
class FullDiskTest < Minitest::Test
  PATIENCE = 60
  LIMIT = 2_097_152
  # sh counts in blocks of 512 bytes.
  LIMITED = ["sh", "-c", 'ulimit -f "$0"; exec "$@"', (LIMIT / 512).to_s].freeze
  APP = <<~RUBY
    run do |env|
      case env["PATH_INFO"]
      when "/fails" then raise "planted"
      when "/speaks" then env["rack.errors"].puts("planted")
      end
      [200, {}, [env["rack.input"].read.bytesize.to_s]]
    end
  RUBY
  WAYS = { "of_one_process" => 0, "with_workers" => 2 }.freeze

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    @log = File.join(@folder, "log")
    File.write(File.join(@folder, "config.ru"), APP)
  end

  def teardown
    @served&.stop
    FileUtils.remove_entry(@folder)
  end

  WAYS.each do |way, workers|
    define_method(:"test_a_server_#{way}_refuses_bodies_for_which_its_disk_has_no_room") do
      serve(workers, "--control", "unix:control.sock", "--log-file", @log, through: LIMITED)
      3.times do
        assert_equal "503", upload(LIMIT + 1_000_000)
        assert_equal "200", upload(LIMIT - 1_000_000)
        assert_equal "200", upload(10)
      end
      wait_until { disk_bytes.zero? }
      @served.stop

      assert_equal 3, File.read(@log).scan(/ 503 .*could not write the body to its disk: File too large/).size
    end

    define_method(:"test_a_server_#{way}_serves_on_while_its_log_has_no_room_and_says_then_what_is_lost") do
      File.write(@log, "")
      serve(workers, "--log-file", @log, through: LIMITED)
      # Lines are collected for a while before they are written: once more, until that was while there was no room.
      wait_until do
        File.truncate(@log, LIMIT)
        statuses = Array.new(30) { @served.get("/").code }

        assert_equal ["200"], statuses.uniq
        File.truncate(@log, 0)
        @served.get("/late")
        File.read(@log).match?(/^\n\d.* GET .*^\S+ \S+ lost \d+ lines? of the log: File too large\n/m)
      end
    end

    define_method(:"test_a_server_#{way}_serves_on_while_nothing_it_prints_has_room") do
      serve(workers, "--log-file", "/dev/full", through: ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"])
      statuses = %w[/ /fails /speaks /].map { |path| @served.get(path).code }

      assert_equal %w[200 500 200 200], statuses
      assert_predicate @served.stop, :success?
    end

    define_method(:"test_a_server_#{way}_starts_although_its_first_lines_have_no_room") do
      manager = Socket.new(:UNIX, :DGRAM)
      manager.bind(Socket.sockaddr_un(File.join(@folder, "notify")))
      pid = spawn({ "NOTIFY_SOCKET" => File.join(@folder, "notify") }, *ServedProcess::HEDDLE, "serve", "-b",
                  "unix:server", "-w", workers.to_s, chdir: @folder, in: File::NULL, out: "/dev/full", err: "/dev/full")
      manager.timeout = PATIENCE
      nil until manager.recv(1_000).include?("READY=1")
      client = UNIXSocket.new(File.join(@folder, "server"))
      client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

      assert_operator client.read, :start_with?, "HTTP/1.1 200 "
    ensure
      [client, manager].each { |socket| socket&.close }
      Process.kill(:TERM, pid)
      Process.wait(pid)
    end

    define_method(:"test_a_server_#{way}_says_when_files_are_too_small_for_the_memory_of_messages") do
      limited = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh"]
      output, errors, status = Open3.capture3(*limited, *ServedProcess::HEDDLE, "serve", "-b", "unix:server", "-w",
                                              workers.to_s, "--control", "off", chdir: @folder)
      lines = errors.lines.grep(/\Aheddle|\tfrom/)

      assert_equal [1, 2, ""], [lines.size, status.exitstatus, output], errors
      assert_match(/\Aheddle: pubsub_memory .*: File too large.*ulimit -f/, lines.first)
    end
  end

  private

  def serve(workers, *arguments, through:)
    options = ["-w", workers.to_s, "--reserve-workers", "0", "-p", "0", "-b", "127.0.0.1", "--pubsub-memory", "1m"]
    @served = ServedProcess.new([*through, *ServedProcess::HEDDLE, "serve", *options, *arguments], folder: @folder)
  end

  # => the status
  def upload(bytes)
    socket = TCPSocket.new("127.0.0.1", @served.uri.port)
    socket.timeout = PATIENCE
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: #{bytes}\r\n\r\n", "x" * bytes)
    socket.read[%r{\AHTTP/1.1 (\d+) }, 1]
  ensure
    socket&.close
  end

  def disk_bytes
    socket = UNIXSocket.new(File.join(@folder, "control.sock"))
    socket.write("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    PrometheusText.parse(socket.read.split("\r\n\r\n", 2).last)["heddle_body_disk_bytes"].values.sum
  ensure
    socket&.close
  end

  def wait_until
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      flunk "not within #{PATIENCE} s:\n#{@served.output}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.001
    end
  end
end
