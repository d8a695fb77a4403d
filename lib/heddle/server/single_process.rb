# frozen_string_literal: true

module Heddle
  class Server
    # What a server with a single process does itself. With workers, the master does it ({Cluster}).
    module SingleProcess
      Autoloads.add(self, "heddle/server/single_process")
    end
  end
end
