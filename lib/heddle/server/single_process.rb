# frozen_string_literal: true

module Heddle
  class Server
    # Tasks that a server of one process does itself. With workers, the master does them ({Cluster}).
    module SingleProcess
      Autoloads.add(self, "heddle/server/single_process")
    end
  end
end
