# frozen_string_literal: true

module Bench
  # CPU time and memory of a process, as exact as the system tells.
  module ProcessUsage
    module_function

    # @return [Float] CPU seconds of this process, all its threads
    def cpu_seconds = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

    # @param pid [Integer] another process
    # @return [Float, nil] CPU seconds that it used so far, with threads that have ended and the kernel's workers for
    #   it; nil where the system does not tell. It counts in hundredths of a second.
    def cpu_seconds_of(pid)
      # The second field is the program's name and may contain anything, closing brackets too.
      fields = File.read("/proc/#{pid}/stat").rpartition(")").last.split
      (fields[11].to_i + fields[12].to_i).fdiv(Etc.sysconf(Etc::SC_CLK_TCK))
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    # @return [Float, nil] resident memory at its highest, in MB
    def peak_megabytes = field_in("/proc/self/status", "VmHWM")

    # @return [Float, nil] resident memory now, in MB
    def megabytes = megabytes_of("self")

    # @return [Float, nil] resident memory of another process now, in MB
    def megabytes_of(pid) = field_in("/proc/#{pid}/status", "VmRSS")

    # @return [Float, nil] the same, with what it shares divided among those that share it
    def pss_megabytes_of(pid) = field_in("/proc/#{pid}/smaps_rollup", "Pss:")

    # @return [Float, nil] memory of another process that it has written to and shares with none, in MB
    def private_megabytes_of(pid) = field_in("/proc/#{pid}/smaps_rollup", "Private_Dirty:")

    # @return [Float, nil] memory of another process that is of no file, in MB. A page that a child process still shares
    #   with its parent counts, so that to write to it changes nothing
    def anonymous_megabytes_of(pid) = field_in("/proc/#{pid}/smaps_rollup", "Anonymous:")

    def field_in(path, field)
      line = File.foreach(path).find { |text| text.start_with?(field) }
      line && (line[/\d+/].to_i / 1024.0)
    rescue Errno::ENOENT, Errno::ESRCH, Errno::EACCES
      nil
    end
    private_class_method :field_in
  end
end
