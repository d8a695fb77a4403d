# frozen_string_literal: true

module Heddle
  class Server
    # The limit on the size of files that this process writes (RLIMIT_FSIZE, `LimitFSIZE=` of systemd).
    module FileSizeLimit
      SIGNAL = "XFSZ"
      private_constant :SIGNAL

      # Makes a write beyond the limit fail with EFBIG. By default, the signal SIGXFSZ would end the process. Forked
      # processes inherit that. Programs that the application starts don't: the system resets a handler, unlike
      # `IGNORE`.
      # @return [void]
      def self.make_writes_fail
        before = trap(SIGNAL) {} # rubocop:disable Lint/EmptyBlock
        trap(SIGNAL, before) unless OwnTrap::FREE.include?(before)
      end
    end
  end
end
