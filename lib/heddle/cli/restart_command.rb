# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle restart`: starts a new master on the same sockets, for example after an update of Heddle.
    class RestartCommand < ReloadCommand
      NAME = "restart"
    end
  end
end
