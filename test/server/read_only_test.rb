# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "socket"
require "support/served_process"
require "tmpdir"

# A container whose file system is read-only, the folder for temporary files included: a mount namespace in which every
# mount is.
class ReadOnlyTest < Minitest::Test
  PATIENCE = 60
  SCRIPT = <<~SH
    for mount in $(awk '{ print $5 }' /proc/self/mountinfo); do mount -o remount,bind,ro "$mount" 2>/dev/null; done
    if touch "$0/written" /tmp/heddle-written 2>/dev/null; then echo "WRITABLE"; exit 3; fi
    exec "$@"
  SH
  APP = 'run ->(env) { [200, {}, [env["rack.input"].read.bytesize.to_s]] }'
  NOTICE = "no folder for temporary files is writable"
  WAYS = { "of_one_process" => 0, "with_workers" => 2 }.freeze

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    FileUtils.mkdir(File.join(@folder, "tmp"))
    File.write(File.join(@folder, "config.ru"), APP)
  end

  def teardown
    @served&.stop
    FileUtils.remove_entry(@folder)
  end

  WAYS.each do |way, workers|
    define_method(:"test_a_server_#{way}_serves_what_needs_no_file_from_a_read_only_file_system") do
      serve(workers)

      assert_equal %w[200 503 200], [1_000, 2_000_000, 10].map { |bytes| upload(bytes) }
      assert_equal 1, @served.output.scan(NOTICE).size, @served.output
      refute_match(/\bfrom .*\.rb:\d+|no control socket/, @served.output)
    end

    define_method(:"test_commands_find_a_server_#{way}_on_a_read_only_file_system") do
      serve(workers)
      status, = run_command("status", "--json")

      assert_includes status, "\"pid\": #{@served.pid}"
      refute_includes status, "stuck"
      assert_equal "stopped", run_command("stop").first.lines(chomp: true).last
      assert_predicate @served.wait, :success?
      @served = nil
    end
  end

  def test_check_has_no_complaint_of_a_read_only_file_system
    output, status = run_command("check")

    assert_predicate status, :success?, output
    refute_match(/\bfrom .*\.rb:\d+/, output)
  end

  def test_status_without_a_server_says_so_on_a_read_only_file_system
    output, status = run_command("status")

    assert_equal 1, status.exitstatus
    assert_match(/\Aheddle: no server listens on unix:@heddle-\d+/, output)
  end

  private

  def read_only(*command)
    user = Process.uid.zero? ? [] : ["--map-root-user"]
    ["unshare", *user, "--mount", "sh", "-c", SCRIPT, @folder, *command]
  end

  def environment = { "TMPDIR" => nil, "TMP" => nil, "TEMP" => nil, "RACK_ENV" => "production" }

  def serve(workers)
    options = ["-w", workers.to_s, "--reserve-workers", "0", "-p", "0", "-b", "127.0.0.1"]
    @served = ServedProcess.new(read_only(*ServedProcess::HEDDLE, "serve", *options), folder: @folder, environment:)
  end

  # => what it has printed, its status
  def run_command(*arguments)
    Open3.capture2e(environment, *read_only(*ServedProcess::HEDDLE, *arguments), chdir: @folder)
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
end
