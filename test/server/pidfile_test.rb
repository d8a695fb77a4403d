# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "tmpdir"

class PidfileTest < Minitest::Test
  Pidfile = Heddle::Server::Pidfile

  def setup = @folder = Dir.mktmpdir

  def teardown = FileUtils.remove_entry(@folder)

  def path(name = "server.pid") = File.join(@folder, name)

  def test_a_pidfile_names_the_process_until_it_is_removed
    pidfile = Pidfile.new(path("pids/server.pid"))
    pidfile.write

    assert_equal "#{Process.pid}\n", File.read(pidfile.path)
    pidfile.remove

    refute_path_exists pidfile.path
  end

  def test_a_pidfile_that_cannot_be_written_is_reported_when_its_path_is_not_utf8
    error = assert_raises(Heddle::Server::BootError) { Pidfile.new("/proc/caf\xE9/pid").write }

    assert_includes error.message.b, ": No such file or directory. Set another file"
  end

  def test_a_pidfile_of_another_process_is_kept
    File.write(path, "1\n")
    Pidfile.new(path).remove

    assert_path_exists path
  end

  def test_a_pidfile_of_a_server_that_still_runs_is_that_servers_again_afterwards
    File.write(path, "#{Process.ppid}\n")
    pidfile = Pidfile.new(path)
    pidfile.write

    assert_equal "#{Process.pid}\n", File.read(path)
    pidfile.remove

    assert_equal "#{Process.ppid}\n", File.read(path)
  end

  # The master that a restart has replaced may still answer requests, or be a zombie, when the new one ends.
  def test_a_pidfile_of_a_replaced_server_is_removed
    File.write(path, "#{Process.ppid}\n")
    pidfile = Pidfile.new(path)
    pidfile.write(replaced: true)
    pidfile.remove

    refute_path_exists path
  end

  def test_a_file_that_is_overwritten_names_a_process_at_any_moment
    ["4194304000\n", "x" * 1_000].each do |former|
      File.write(path, former)
      before_the_cut = nil
      cut = TracePoint.new(:c_call) { |call| before_the_cut = File.read(path) if call.method_id == :truncate }
      cut.enable { Pidfile.new(path).write }

      assert_equal Process.pid, before_the_cut.lines.first.to_i
      assert_equal "#{Process.pid}\n", File.read(path)
    end
  end

  def test_a_pidfile_of_a_process_that_has_ended_is_removed
    File.write(path, "#{Process.spawn("true").tap { |pid| Process.wait(pid) }}\n")
    pidfile = Pidfile.new(path)
    pidfile.write
    pidfile.remove

    refute_path_exists path
  end

  def test_a_named_pipe_is_refused
    File.mkfifo(path)
    error = assert_raises(Heddle::Server::BootError) { Pidfile.new(path).write }

    assert_equal "the pidfile #{path} is a named pipe. Set a regular file with --pidfile.", error.message
  end

  def test_only_a_file_is_read_when_it_is_removed
    File.mkfifo(path)
    [path, "/dev/zero"].each do |named|
      File.stub(:read, ->(*) { flunk "#{named} is read" }) { Pidfile.new(named).remove }
    end

    assert_path_exists path
  end
end
