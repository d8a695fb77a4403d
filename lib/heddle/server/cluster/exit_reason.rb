# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Describes for the log how a process has ended.
      module ExitReason
        # The signals that end a process because native code has crashed.
        CRASHES = %w[SEGV BUS ABRT ILL FPE].freeze

        # Finds out whether a process is in Ruby's crash handler. While the handler runs, its thread blocks exactly the
        # signal of the crash.
        # @param pid [Integer]
        # @return [String, nil] the signal, one of CRASHES; nil: the process has not crashed, or the system has no /proc
        def self.find_handled_crash(pid)
          masks = Dir.glob("/proc/#{pid}/task/*/status").map { |path| ::File.read(path)[/^SigBlk:\s*(\h+)/, 1].hex }
          CRASHES.find { |name| masks.include?(1 << (Signal.list.fetch(name) - 1)) }
        rescue SystemCallError
          nil # the process has ended
        end

        # @param status [Process::Status]
        # @return [String]
        def self.describe(status)
          return "exit status #{status.exitstatus}" unless status.signaled?

          name = Signal.signame(status.termsig)
          hint = case name
                 when "KILL" then ", which Heddle has not sent (the system may be out of memory: see dmesg)"
                 when *CRASHES then " (native code has crashed; Ruby's crash report is above)"
                 else ""
                 end
          "SIG#{name}#{hint}"
        end
      end
    end
  end
end
