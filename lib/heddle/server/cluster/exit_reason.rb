# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Describes in the log how a process has ended.
      module ExitReason
        # Signals that end a process whose native code has failed.
        CRASHES = %w[SEGV BUS ABRT ILL FPE].freeze

        # Linux's mask of these signals.
        CRASH_MASK = CRASHES.sum { |name| 1 << (Signal.list.fetch(name) - 1) }
        private_constant :CRASH_MASK

        # Whether a thread of a process is in Ruby's handler of a crash, which blocks that signal and no other. Always
        # false where the system has no /proc.
        # @param pid [Integer]
        # @return [Boolean]
        def self.reporting_crash?(pid)
          Dir.glob("/proc/#{pid}/task/*/status").any? do |path|
            blocked = ::File.read(path)[/^SigBlk:\s*(\h+)/, 1].hex
            blocked != 0 && blocked.nobits?(~CRASH_MASK)
          end
        rescue SystemCallError
          false # it has ended
        end

        # @param status [Process::Status]
        # @return [String]
        def self.describe(status)
          return "exit status #{status.exitstatus}" unless status.signaled?

          name = Signal.signame(status.termsig)
          hint = case name
                 when "KILL" then ", which Heddle has not sent: the system may be out of memory (see dmesg)"
                 when *CRASHES then ": native code has crashed, its report is above"
                 else ""
                 end
          "SIG#{name}#{hint}"
        end
      end
    end
  end
end
