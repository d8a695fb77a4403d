# frozen_string_literal: true

module Bench
  # CPU time and memory of a process and of all that descend from it: a server may have a supervisor.
  class ProcessTree
    # @param pid [Integer] of the eldest
    def initialize(pid)
      @pid = pid
    end

    # @return [Array<Integer>] the eldest first
    def pids = descend(@pid)

    # @return [Float, nil] CPU seconds so far of those that live, in hundredths of a second; nil where the system does
    #   not tell
    def cpu_seconds = sum { |pid| ProcessUsage.cpu_seconds_of(pid) }

    # @return [Float, nil] proportional set size in MB: what processes share counts once
    def pss_megabytes = sum { |pid| ProcessUsage.pss_megabytes_of(pid) }

    # @return [Float, nil] resident set size in MB: what processes share counts for each
    def rss_megabytes = sum { |pid| ProcessUsage.megabytes_of(pid) }

    private

    def sum(&)
      found = pids.filter_map(&)
      found.sum unless found.empty?
    end

    def descend(pid)
      children = Dir.glob("/proc/#{pid}/task/*/children").flat_map { |path| children_in(path) }
      [pid, *children.flat_map { |child| descend(child) }]
    end

    def children_in(path)
      File.read(path).split.map(&:to_i)
    rescue Errno::ENOENT, Errno::ESRCH
      []
    end
  end
end
