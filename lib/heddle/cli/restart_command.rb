# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle restart`: replaces the master with a new one on the same sockets, for example after an update of Heddle.
    class RestartCommand < ReloadCommand
      NAME = "restart"
    end
  end
end
