# frozen_string_literal: true

module Heddle
  class Server
    # Stops a server on INT and TERM. A trap may do next to nothing, so it writes to a pipe that a task reads.
    class Signals
      NAMES = %w[INT TERM].freeze
      private_constant :NAMES

      # @param server [Server]
      # @param log [Log]
      def initialize(server, log)
        @server = server
        @log = log
      end

      # Starts watching. The traps are as before when the task has ended.
      # @return [Task] to be cancelled when the server has stopped
      def watch
        reader, writer = IO.pipe
        before = NAMES.to_h { |name| [name, trap(name) { writer.write_nonblock("#{name}\n", exception: false) }] }
        Heddle.async(name: "signals", background: true) do
          follow(reader)
        ensure
          before.each { |name, handler| trap(name, handler || "DEFAULT") }
          reader.close
          writer.close
        end
      end

      private

      def follow(reader)
        heard = 0
        while (name = reader.gets(chomp: true))
          heard += 1 if name == "INT"
          again = heard > 1
          @log.notice(again ? "stopping at once" : "stopping when running requests are answered#{hint(name)}")
          @server.stop(now: again)
        end
      end

      def hint(name) = name == "INT" ? "; Ctrl-C again stops at once" : ""
    end
  end
end
