# frozen_string_literal: true

module Heddle
  class Server
    # A server with several processes that serve the same sockets. The master opens the sockets, and loads nothing of
    # the application. It forks the mold. The mold loads the application and forks the workers, which serve requests.
    # The master also manages restarts.
    module Cluster
      Autoloads.add(self, "heddle/server/cluster")

      # @param server [Server] a server that accepts requests
      # @return [Hash{Symbol => String}] details of a serving process for the log line at boot
      def self.boot_details(server)
        { selector: server.selector.to_s, protection: Protection.summary(server.configuration.reasons_off),
          adapted: Adaptations.summary(server.configuration) }
      end
    end
  end
end
