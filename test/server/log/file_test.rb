# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "fileutils"
require "net/http"
require "open3"
require "tmpdir"

# A log's file is followed by its name.
class LogFileTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "heddle.log")
  end

  def teardown
    FileUtils.remove_entry(@folder)
  end

  # Looks whenever it writes: nobody has to wait for a second.
  def file = yield(Heddle::Server::Log::File.new(@path, poll_interval: 0))

  def test_a_renamed_file_is_reopened
    file do |log|
      log.write("one\n")
      File.rename(@path, "#{@path}.1")
      log.write("two\n")
    end

    assert_equal "one\n", File.read("#{@path}.1")
    assert_equal "two\n", File.read(@path)
  end

  def test_a_removed_or_replaced_file_is_reopened
    file do |log|
      log.write("one\n")
      File.unlink(@path)
      log.write("two\n")
      FileUtils.mv(@path, "#{@path}.1")
      File.write(@path, "made by logrotate's create\n")
      log.write("three\n")
    end

    assert_equal "made by logrotate's create\nthree\n", File.read(@path)
  end

  def test_a_truncated_file_is_written_from_its_beginning
    file do |log|
      log.write("one\n" * 100)
      File.truncate(@path, 0)
      log.write("two\n")
    end

    assert_equal "two\n", File.read(@path)
  end

  def test_while_the_folder_is_gone_the_old_file_is_written
    file do |log|
      log.write("one\n")
      FileUtils.mv(@folder, "#{@folder}-moved")
      log.write("two\n")

      assert_equal "one\ntwo\n", File.read("#{@folder}-moved/heddle.log")
      FileUtils.mv("#{@folder}-moved", @folder)
    end
  end

  def test_a_log_file_is_appended_to_and_not_world_readable
    File.write(@path, "before\n")
    Heddle::Server::Log::File.new(@path).write("after\n")

    assert_equal "before\nafter\n", File.read(@path)
    File.unlink(@path)
    Heddle::Server::Log::File.new(@path)

    assert_equal 0, File.stat(@path).mode & 0o007
  end

  def test_a_file_that_cant_be_written_is_a_message
    error = assert_raises(Heddle::Server::BootError) { Heddle::Server::Log::File.new("#{@folder}/none/heddle.log") }

    assert_match(/can't write the log .*none.*No such file/, error.message)
  end

  def test_the_option_names_it
    configuration = Heddle::Server::Configuration.new(log_file: @path)
    Heddle::Server::Log.of(configuration).event(:restart_started)

    assert_match(/ starting a new master\n/, File.read(@path))
  end

  # Nothing else says of which day it is; an error on the standard error can then be found in the file, too.
  def test_lines_of_text_in_a_file_have_the_date
    configuration = Heddle::Server::Configuration.new(log_file: @path, bind: ["127.0.0.1:0"], protect: [])
    app = ->(env) { env["PATH_INFO"] == "/fail" ? raise("no") : [200, {}, ["hello"]] }
    _, errors = capture_io do
      server = Heddle::Server.new(configuration)
      port = server.open.first[/\d+\z/]
      started = Thread::Queue.new
      thread = Thread.new { server.run(app) { started << true } }
      started.pop
      %w[/ /fail].each { |path| Net::HTTP.get(URI("http://127.0.0.1:#{port}#{path}")) }
      server.stop
      thread.join
    end
    time = "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d"

    assert_match(%r{\A#{time} 200 GET / 5 bytes in }, File.read(@path))
    assert_match(%r{^#{time} error in GET /fail: }, errors)
    assert_match(%r{^#{time} error in GET /fail: }, File.read(@path))
    Heddle::Server::Log.of(Heddle::Server::Configuration.new(log_file: @path, log_format: :json))
                       .event(:restart_started)

    assert_match(/\A{"time":"[^"]+Z","level":"info","event":"restart_started","message":"starting a new master"}\n\z/,
                 File.readlines(@path).last, "as ever")
  end
end
