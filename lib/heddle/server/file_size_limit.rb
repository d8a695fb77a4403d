# frozen_string_literal: true

module Heddle
  class Server
    # Handles the limit on the size of files that this process writes (RLIMIT_FSIZE, `LimitFSIZE=` of systemd).
    module FileSizeLimit
      SIGNAL = "XFSZ"
      private_constant :SIGNAL

      # Makes a write beyond the limit fail with EFBIG. By default, the signal SIGXFSZ would end the process. The trap
      # is an empty block and not `IGNORE`, because exec resets a handler but keeps `IGNORE`: programs that the
      # application starts then behave as usual. Forked processes inherit the trap. If the program has a handler for
      # the signal already, this handler is kept.
      # @return [void]
      def self.make_writes_fail
        before = trap(SIGNAL) {} # rubocop:disable Lint/EmptyBlock
        trap(SIGNAL, before) unless OwnTrap::FREE.include?(before)
      end
    end
  end
end
