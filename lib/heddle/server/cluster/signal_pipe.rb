# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Turns signals into readable events: a trap comes at any moment, and may do next to nothing.
      class SignalPipe
        # @return [IO] readable when there are signals
        attr_reader :io

        # @param names [Array<String>]
        def initialize(names)
          @io, @writer = IO.pipe
          process = Process.pid
          @previous_handlers = names.to_h do |name|
            [name, trap(name) { @writer.write_nonblock("#{name}\n", exception: false) if Process.pid == process }]
          end
        end

        # @return [Array<String>] the signals that have arrived since the last call
        def read
          text = @io.read_nonblock(4_096, exception: false)
          text.is_a?(String) ? text.split("\n") : []
        end

        # Restores the previous handlers.
        # @return [void]
        def close
          @previous_handlers.each { |name, handler| trap(name, handler || "DEFAULT") }
          @io.close
          @writer.close
        end

        # In a child, which is to have its own. Ruby copies signals into it that the parent has not handled before the
        # fork. They would end the child, so they are handled first: Ruby does that when a process signals itself.
        # @return [void]
        def close_in_child
          Process.kill(@previous_handlers.each_key.first, Process.pid)
          @previous_handlers.each_key { |name| trap(name, "DEFAULT") }
          @io.close
          @writer.close
        end
      end
    end
  end
end
