# frozen_string_literal: true

module Heddle
  class Server
    # Raises the number of descriptors, and so of connections, that this process may have.
    module DescriptorLimit
      # The usual soft limit of 1,024 is meant for programs that use `select`: an fd_set has no room for more. So
      # programs that the application starts get the former limit back, if Ruby's calls of exec can be intercepted.
      # @param usable [Integer, nil] how many the process can use; nil: any number. The limit is raised no further: a
      #   program that closes all possible descriptors would take long with a limit of a billion.
      # @param programs [Boolean] whether Ruby's calls of exec may be intercepted
      # @return [void]
      def self.lift(usable = nil, programs: true)
        soft, hard = Process.getrlimit(Process::RLIMIT_NOFILE)
        raised = [hard, *usable].min
        return unless soft < raised

        Process.setrlimit(Process::RLIMIT_NOFILE, raised, hard)
        Native::Processes.exec_with_limit(soft, raised) if programs
      rescue SystemCallError
        # Then the limit stays as it is.
      end
    end
  end
end
