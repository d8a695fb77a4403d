# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # A command that this server can't follow.
      class RejectedError < StandardError
        include Heddle::Error
      end
    end
  end
end
