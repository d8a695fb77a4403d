# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Signals as something to read: a trap may do next to nothing, and comes at any moment.
      class SignalPipe
        # @return [IO] readable when there are signals
        attr_reader :io

        # @param names [Array<String>]
        def initialize(names)
          @io, @writer = IO.pipe
          process = Process.pid
          @before = names.to_h do |name|
            [name, trap(name) { @writer.write_nonblock("#{name}\n", exception: false) if Process.pid == process }]
          end
        end

        # @return [Array<String>] those that came since the last look
        def take
          text = @io.read_nonblock(4_096, exception: false)
          text.is_a?(String) ? text.split("\n") : []
        end

        # Everything is as it was before.
        # @return [void]
        def close
          @before.each { |name, handler| trap(name, handler || "DEFAULT") }
          @io.close
          @writer.close
        end

        # In a child, which is to have its own. Ruby copies signals into it that the parent has not handled before the
        # fork. They would end the child, so they are handled first: Ruby does that when a process signals itself.
        # @return [void]
        def forget
          Process.kill(@before.each_key.first, Process.pid)
          @before.each_key { |name| trap(name, "DEFAULT") }
          @io.close
          @writer.close
        end
      end
    end
  end
end
