# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "minitest/mock"
require "socket"
require "tmpdir"

# The folder of workers' sockets goes with its server, also with one that was killed.
class ControlFolderTest < Minitest::Test
  Folder = Heddle::Server::Control::Folder

  def setup = @parent = Dir.mktmpdir

  def teardown = FileUtils.remove_entry(@parent)

  # A process that has made one, and its path.
  def other_server
    reader, writer = IO.pipe
    pid = fork do
      writer.puts(Folder.new(@parent).path)
      writer.close
      sleep
    end
    writer.close
    path = reader.gets(chomp: true)
    yield pid, path
  ensure
    reader.close
    Process.kill("KILL", pid)
    Process.wait(pid)
  end

  def test_the_folder_is_accessible_to_this_user_only
    folder = Folder.new(@parent)

    assert_equal 0o700, File.stat(folder.path).mode & 0o777
    folder.remove

    assert_empty Dir.children(@parent)
  end

  def test_a_folder_of_another_user_is_not_removed
    path = File.join(@parent, "heddle-workers-of-another")
    Dir.mkdir(path)
    foreign = File.lstat(path).tap { |stat| stat.define_singleton_method(:owned?) { false } }
    File.stub(:lstat, foreign) { Folder.new(@parent).remove }

    assert_path_exists path
  end

  def test_the_folder_of_a_killed_server_is_removed_and_that_of_a_running_one_kept
    killed = other_server { |_pid, path| path }

    assert_path_exists killed
    other_server do |_pid, running|
      folder = Folder.new(@parent)

      refute_path_exists killed
      assert_path_exists running
      folder.remove
    end
  end

  def test_a_folder_for_temporary_files_whose_path_is_too_long_for_a_socket_is_not_used
    long = File.join(@parent, "a" * 60)
    Dir.mkdir(long)
    folder = Heddle::TemporaryFolder.stub(:find, long) { Folder.new }

    assert_equal Etc.systmpdir, File.dirname(folder.path)
    UNIXServer.new(File.join(folder.path, "4194304.sock")).close
    folder.remove
  end

  def test_a_full_disk_is_reported_with_a_remedy
    full = ->(*) { raise Errno::ENOSPC }
    error = assert_raises(Heddle::Server::BootError) { Dir.stub(:mkdir, full) { Folder.new(@parent) } }

    assert_equal "can't make a folder for the workers' sockets in #{@parent}: No space left on device. " \
                 "Name another folder with TMPDIR.", error.message
  end

  def test_other_files_and_folders_are_kept
    File.write(File.join(@parent, "heddle-workers-file"), "")
    Dir.mkdir(File.join(@parent, "else"))
    File.symlink("else", File.join(@parent, "heddle-workers-link"))
    Folder.new(@parent).remove

    assert_equal %w[else heddle-workers-file heddle-workers-link], Dir.children(@parent).sort
  end
end
