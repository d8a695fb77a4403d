# frozen_string_literal: true

module Heddle
  class Server
    # What a server of one process does itself, and a master does for its workers ({Cluster}).
    module SingleProcess
      Autoloads.add(self, "heddle/server/single_process")
    end
  end
end
