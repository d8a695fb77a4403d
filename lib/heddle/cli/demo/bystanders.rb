# frozen_string_literal: true

require "heddle/runtime"

module Heddle
  module CLI
    class Demo
      # A request that blocks the server, and fifty that have nothing to do with it: one after the other is sent, by a
      # process of its own, since a server that stands still could not send them. It tells what {FanOut} tells; request
      # 0 is the one that blocks.
      module Bystanders
        # How many there are.
        REQUESTS = 50
        # Seconds from one to the next.
        GAP = 0.016
        # The path of their requests.
        LIGHT = "/sleep?seconds=0.2"

        # The program of the process, see {Burst}.
        # @param arguments [Array<String>] host, port, and the path of what blocks
        def self.main(arguments)
          host, port, path = arguments
          $stdout.sync = true
          Heddle.run do
            Heddle.async(background: true) { exit!(1) if $stdin.read }
            FanOut.new(host:, port: Integer(port), paths: [path, *[LIGHT] * REQUESTS], gap: GAP, patience: 10.0)
                  .each { |line| $stdout.write(line) }
          end
        rescue Errno::EPIPE
          # The browser listens no more.
        end
      end
    end
  end
end
