# frozen_string_literal: true

require "etc"

# How many of the machine's processors idle, from Linux's /proc/stat.
class IdleProcessors
  # Seconds over which it looks: tests wait and compute by turns.
  WINDOW = 1
  # So much of a processor is enough: a test file computes for less than half of its time.
  ENOUGH = 0.75
  IDLE, IOWAIT = 4, 5
  private_constant :WINDOW, :ENOUGH, :IDLE, :IOWAIT

  # @param path [String]
  # @param clock [#call] seconds
  def initialize(path: "/proc/stat", clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
    @path = path
    @clock = clock
    start_window
  end

  # @return [Boolean] whether most of a processor has idled in a window, which each answer begins anew; false while the
  #   window is open, and on systems without /proc
  def one?
    seconds = @clock.call - @started
    return false if seconds < WINDOW

    before = @idle
    start_window
    !before.nil? && @idle - before >= ENOUGH * seconds
  end

  private

  def start_window
    @started = @clock.call
    @idle = idle_seconds
  end

  def idle_seconds
    File.open(@path, &:gets).split.values_at(IDLE, IOWAIT).sum(&:to_f) / Etc.sysconf(Etc::SC_CLK_TCK)
  rescue Errno::ENOENT
    nil
  end
end
