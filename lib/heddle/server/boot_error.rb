# frozen_string_literal: true

module Heddle
  class Server
    # The server can't start: the message says what happened, where, and what to do. Nothing of ours in a backtrace
    # would help.
    class BootError < StandardError
    end
  end
end
