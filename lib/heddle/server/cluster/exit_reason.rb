# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Describes in the log how a process has ended.
      module ExitReason
        # Signals that end a process whose native code has failed.
        CRASHES = %w[SEGV BUS ABRT ILL FPE].freeze

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
