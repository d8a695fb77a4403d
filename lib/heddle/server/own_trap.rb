# frozen_string_literal: true

module Heddle
  class Server
    # Handlers of signals for this process alone. A child that the application forks inherits the handlers, but has no
    # server. In the child the signal has its default effect.
    module OwnTrap
      # The results of trap for a signal without a handler.
      FREE = [nil, "DEFAULT", "SYSTEM_DEFAULT"].freeze

      # @param name [String] of a signal that ends a process by default
      # @yield in this process, at each signal
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
