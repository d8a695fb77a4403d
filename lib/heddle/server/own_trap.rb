# frozen_string_literal: true

module Heddle
  class Server
    # Sets signal handlers that work only in this process. A child that the application forks inherits the handlers,
    # but has no server. In such a child, the handler restores the signal's default effect and sends the signal again.
    module OwnTrap
      # What `trap` returns for a signal without a handler.
      FREE = [nil, "DEFAULT", "SYSTEM_DEFAULT"].freeze

      # @param name [String] a signal that ends a process by default
      # @yield at each signal, in this process only
      # @return [Object] the signal's previous handler, as `trap` returns it
      def self.set(name)
        process = Process.pid
        trap(name) do
          next yield if Process.pid == process

          trap(name, "DEFAULT")
          Process.kill(name, Process.pid)
        end
      end
    end
  end
end
