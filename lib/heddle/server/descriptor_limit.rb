# frozen_string_literal: true

module Heddle
  class Server
    # Raises the limit of file descriptors of this process, which limits its connections.
    module DescriptorLimit
      # The usual soft limit of 1,024 protects programs that use `select`, because an fd_set has no room for more. So
      # programs that the application starts get the former limit back, if Ruby's calls of exec can be intercepted.
      # @param usable [Integer, nil] how many descriptors the process can use at most; nil: any number. The limit is not
      #   raised further, because some programs close every possible descriptor, which takes long with a limit of a
      #   billion.
      # @param programs [Boolean] whether Ruby's calls of exec may be intercepted
      # @return [void]
      def self.lift(usable = nil, programs: true)
        soft, hard = Process.getrlimit(Process::RLIMIT_NOFILE)
        raised = [hard, *usable].min
        return unless soft < raised

        Process.setrlimit(Process::RLIMIT_NOFILE, raised, hard)
        Native::Processes.exec_with_limit(soft, raised) if programs
      rescue SystemCallError
        # The limit remains as it is.
      end
    end
  end
end
