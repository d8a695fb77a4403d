# frozen_string_literal: true

module Heddle
  class Server
    # Raises the maximum number of file descriptors of this process, because each connection needs one.
    module DescriptorLimit
      # @param usable [Integer, nil] how many descriptors the process can use at most; nil: any number. The limit is not
      #   raised above this number, because some programs close every possible descriptor, which takes long with a limit
      #   of a billion.
      # @return [void]
      def self.lift(usable = nil)
        soft, hard = Process.getrlimit(Process::RLIMIT_NOFILE)
        raised = [hard, *usable].min
        Process.setrlimit(Process::RLIMIT_NOFILE, raised, hard) if soft < raised
      rescue SystemCallError
        # The limit remains as it is.
      end
    end
  end
end
