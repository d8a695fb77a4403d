# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require_relative "served_folder"

# `heddle record`, started in a server's folder.
class RecordCommandTest < Minitest::Test
  include ServedFolder

  def setup
    super
    Dir.mkdir(file("tmp"))
  end

  # @return [Array(String, Process::Status)]
  def record(*) = Open3.capture2e(*ServedProcess::HEDDLE, "record", *, chdir: @folder)

  # @return [UNIXSocket] of a client whose recording is under way: another one is refused. If that came first, it has
  #   refused this one.
  def long_recording
    client = nil
    try_until do
      client = UNIXSocket.new(file("tmp/heddle-control.sock"))
      client.write("POST /record?seconds=60 HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
      record("--seconds", "0.1").first.include?("another recording is under way") && !client.wait_readable(0)
    end
    client
  end

  # Not for as long as the recording would last.
  def try_until
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (PATIENCE / 2)
    until yield
      raise "tried too long" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
    end
  end

  def traces = Dir[file("tmp/heddle-trace-*.json")]

  def test_each_worker_writes_a_file_of_its_own_and_the_command_names_it
    start("serve", "--workers", "2")
    output, status = record("--seconds", "0.2")

    assert_predicate status, :success?, output
    files = output.scan(/^worker \d \(pid \d+\): (.+\.json)$/).flatten

    assert_equal 2, files.size
    assert_empty files - traces
    assert_match(/^Open a trace in .*perfetto/, output)
    assert_equal(%w[100600] * 2, files.map { |path| File.stat(path).mode.to_s(8) })
  end

  # Requests that begin while it records are in it, also those that never wait.
  def test_recording_has_the_requests_of_its_time
    start("serve")
    stopping = false
    client = Thread.new { @served.get("/fast") until stopping }
    output, status = record("--seconds", "0.5")

    assert_predicate status, :success?, output
    trace = JSON.parse(File.read(output[/.+\.json$/]))

    assert_equal "heddle record", trace["otherData"]["reason"]
    assert(trace["traceEvents"].any? { |event| event["ph"] == "M" && event["args"]["name"] == "GET /fast" })
  ensure
    stopping = true
    client&.join
  end

  { alone: [], with_workers: %w[--workers 2] }.each do |name, options|
    define_method("test_file_is_where_the_server_was_started_also_after_a_change_of_folder_#{name}") do
      other = File.realpath(Dir.mktmpdir)
      Dir.mkdir(File.join(other, "tmp"))
      File.write(file("config.ru"), "run(->(_env) { Dir.chdir(#{other.dump}) && [200, {}, []] })")
      start("serve", *options)
      4.times { @served.get("/") }
      output, status = record("--seconds", "0.1")

      assert_predicate status, :success?, output
      assert_empty Dir[File.join(other, "tmp/*")]
      assert_includes output, file("tmp/heddle-trace-")
    ensure
      FileUtils.rm_rf(other)
    end

    define_method("test_interrupted_command_ends_its_recording_#{name}") do
      start("serve", *options)
      long_recording.close
      try_until { record("--seconds", "0.1").last.success? }
    end
  end

  def test_seconds_out_of_bounds_are_refused
    %w[0 61].each do |seconds|
      output, status = record("--seconds", seconds)

      assert_equal 2, status.exitstatus
      assert_equal "heddle: --seconds must be from 0.1 to 60.0, but is #{seconds}.0\n", output
    end
  end

  def test_command_says_that_no_server_runs
    output, status = record

    assert_equal 1, status.exitstatus
    assert_match(/no server listens on/, output)
  end

  def test_command_says_that_accounts_are_off
    start("serve", "--account", "off")
    output, status = record("--seconds", "0.1")

    assert_equal 1, status.exitstatus
    assert_match(/nothing can be recorded: the option account is off/, output)
  end
end
