# frozen_string_literal: true

require "etc"

# Whether the machine's processors idle, from Linux's /proc/stat. Programs of a lower priority count as idle: the tests
# take their time away.
class IdleProcessors
  # Seconds over which it looks: tests wait and compute by turns.
  WINDOW = 1
  # So much of a processor is enough for one test file more: it computes for a third of its time.
  ENOUGH = 0.5
  # With less than this there is one too many.
  TOO_LITTLE = 0.1
  NICE, IDLE, IOWAIT = 2, 4, 5
  private_constant :WINDOW, :ENOUGH, :TOO_LITTLE, :NICE, :IDLE, :IOWAIT

  # @param path [String]
  # @param clock [#call] seconds
  # @param nice [Integer] this process's own; above 0 its tests are programs of a lower priority, too
  def initialize(path: "/proc/stat", clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) },
                 nice: Process.getpriority(Process::PRIO_PROCESS, 0))
    @path = path
    @clock = clock
    @fields = nice > 0 ? [IDLE, IOWAIT] : [NICE, IDLE, IOWAIT]
    start_window
  end

  # How many test files more should run at a time, from what idled in a window, which each answer begins anew.
  # @return [Integer] 1, 0 or -1; 0 while the window is open, and on systems without /proc
  def change
    seconds = @clock.call - @started
    return 0 if seconds < WINDOW

    before = @idle
    start_window
    return 0 unless before

    idle = (@idle - before) / seconds
    if idle >= ENOUGH then 1
    elsif idle < TOO_LITTLE then -1
    else 0
    end
  end

  private

  def start_window
    @started = @clock.call
    @idle = idle_seconds
  end

  def idle_seconds
    File.open(@path, &:gets).split.values_at(*@fields).sum(&:to_f) / Etc.sysconf(Etc::SC_CLK_TCK)
  rescue Errno::ENOENT
    nil
  end
end
