# frozen_string_literal: true

module Bench
  module Realtime
    module Rows
      # What the rows have in common: a program opens the sockets and does what it is asked for.
      class SocketRow < HTTP::Rows::HTTPRow
        SETTLING = 2 # seconds: until a server has done what opening sockets brings with it

        # @param path [String] says what the application does
        # @param events [String, nil] a path: all sockets but the first are event streams of it
        def initialize(path:, events: nil, **)
          super(**)
          @path = path
          @events = events
        end

        # @return [String, nil] why the contestant does not take part
        def excludes(contestant)
          @events && !contestant.event_streams? ? "has no event streams here" : super
        end

        def time_limit = 120

        # @return [Boolean] whether the server listens over TLS
        def tls? = false

        # @return [Integer] of the server that serve
        def processes = 1

        private

        # @yieldparam ask [#call] sends a line to the program and returns its answer
        # @raise [Child::Failed] when not all sockets could be opened
        def sockets(server, contestant, count)
          words = contestant.words(@path)
          prefix, suffix = @path == "/room" ? words.room : words.echo
          HTTP::Native.run("sockets", server.port, @path, count, words.hello, prefix, suffix, *@events) do |said, input|
            opened = said.call
            raise Child::Failed, "#{opened[:opened]} of #{count} sockets were opened" if opened[:opened] < count

            sleep(SETTLING)
            yield(lambda do |line|
              input.puts(line)
              said.call
            end)
          end
        end

        # The first requests load what has nothing to do with sockets.
        def warm_up(server, contestant)
          50.times { server.check("/hello", expected: "hello\n") }
          sockets(server, contestant, 20) { |ask| ask.call("publish 3 100") if @path == "/room" }
          sleep(SETTLING / 2.0)
        end

        def memory(server)
          server.tree.pss_megabytes or raise Child::Failed, "this system does not tell a process's memory"
        end
      end
    end
  end
end
