# frozen_string_literal: true

require "fileutils"
require "socket"
require "tmpdir"

# A database server for one test: in a temporary folder, on a unix socket, ended by its process id.
class PrivateServer
  # Seconds that a start or a stop may take on a machine that is busy with other tests.
  PATIENCE = 60

  # @return [String] the folder; the server's socket is in it
  attr_reader :folder

  # @param socket [String] the name of its socket in the folder
  # @yieldparam folder [String] to make it ready before the start
  # @yieldreturn [Array<String>] the command
  def initialize(socket)
    @folder = Dir.mktmpdir("heddle-db")
    @log = File.join(@folder, "log")
    @socket = File.join(@folder, socket)
    @command = yield(@folder)
    start
  rescue StandardError
    stop
    raise
  end

  # Stops it as a crash would, and starts it again with its data.
  def restart
    Process.kill(crash_signal, @pid)
    Process.wait(@pid)
    start
  end

  def stop
    return unless @folder

    if @pid
      Process.kill(stop_signal, @pid)
      Process.wait(@pid)
    end
    FileUtils.rm_rf(@folder)
    @pid = @folder = nil
  rescue Errno::ESRCH, Errno::ECHILD
    FileUtils.rm_rf(@folder)
  end

  private

  def start
    @pid = Process.spawn(*@command, chdir: @folder, in: File::NULL, out: @log, err: %i[child out])
    wait_for(@socket)
  end

  def stop_signal = :INT

  def crash_signal = :KILL

  def wait_for(path)
    deadline = now + PATIENCE
    until answers?(path)
      raise "it ended:\n#{File.read(@log)}" if Process.wait(@pid, Process::WNOHANG)
      raise "it does not start:\n#{File.read(@log)}" if now > deadline

      sleep 0.02
    end
  end

  def answers?(path)
    UNIXSocket.new(path).close
    true
  rescue SystemCallError
    false
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
