# frozen_string_literal: true

module Heddle
  class Server
    # Several processes that serve the same sockets. The master opens them and loads nothing of the application; it
    # forks the mold, which loads the application and forks the workers, which serve. The master also manages restarts.
    module Cluster
      Autoloads.add(self, "heddle/server/cluster")

      # @param server [Server] that accepts requests
      # @return [Hash{Symbol => String}] how a serving process is described at boot
      def self.boot_details(server)
        { selector: server.selector.to_s, protection: Protection.summary(server.configuration.reasons_off),
          adapted: Adaptations.summary(server.configuration) }
      end
    end
  end
end
