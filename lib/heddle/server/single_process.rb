# frozen_string_literal: true

module Heddle
  class Server
    # Handles signals and the time limit of the stop in a server with a single process. In a server with workers, the
    # master does this ({Cluster}).
    module SingleProcess
      Autoloads.add(self, "heddle/server/single_process")
    end
  end
end
