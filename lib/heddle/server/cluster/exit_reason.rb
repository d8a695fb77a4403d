# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Describes in the log how a process has ended.
      module ExitReason
        # Signals that end a process whose native code has failed.
        CRASHES = %w[SEGV BUS ABRT ILL FPE].freeze

        # Finds the crash that a thread of a process is handling: Ruby's handler blocks this signal and no other.
        # @param pid [Integer]
        # @return [String, nil] one of CRASHES; always nil where the system has no /proc
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
                 when "KILL" then ", which Heddle has not sent: the system may be out of memory (see dmesg)"
                 when *CRASHES then ": native code has crashed; its report is above"
                 else ""
                 end
          "SIG#{name}#{hint}"
        end
      end
    end
  end
end
