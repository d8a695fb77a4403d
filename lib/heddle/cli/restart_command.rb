# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle restart`: a new master, and so a new Heddle, on the same sockets.
    class RestartCommand < ReloadCommand
      NAME = "restart"
    end
  end
end
