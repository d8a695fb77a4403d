# frozen_string_literal: true

module Bench
  # DelayServer on Heddle's sockets, on the second core: on async it takes longer for a request than the clients do.
  module QuickServer
    PROGRAM = File.expand_path("quick_server_program.rb", __dir__)

    # @yieldparam port [Integer]
    def self.run(&) = DelayServer.run(PROGRAM, &)
  end
end
