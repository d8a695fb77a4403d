# frozen_string_literal: true

require "socket"

module Bench
  module Rows
    # Two fibers that answer each other over a socketpair: every read has to wait, so a round trip is two writes, two
    # reads, two waits and two switches.
    class PingPong < Row
      def key = "ping-pong"

      def title = "socketpair ping-pong, a round trip"

      def unit = "µs"

      def details = %i[cpu_us]

      def sizes(quick:) = { round_trips: quick ? 5_000 : 100_000 }

      def excludes(contestant) = contestant.key == "blocking" ? "would wait for itself" : super

      def measure(contestant, size)
        play(contestant, 1_000)
        answered = 0
        seconds, cpu = timed { answered = play(contestant, size[:round_trips]) }
        check(answered, size[:round_trips], "answers")
        { value: seconds * 1e6 / answered, cpu_us: cpu * 1e6 / answered }
      end

      # @return [Integer] answers that came back
      def play(contestant, count)
        answers = 0
        contestant.run do
          here, there = UNIXSocket.pair
          contestant.spawn { echo(there, count) }
          contestant.spawn { answers = ask(here, count) }
        end
        answers
      end

      private

      def echo(socket, count)
        buffer = +""
        count.times { socket.write(socket.readpartial(64, buffer)) }
        socket.close
      end

      def ask(socket, count)
        buffer = +""
        answers = 0
        count.times do
          socket.write("ping")
          answers += 1 if socket.readpartial(64, buffer) == "ping"
        end
        socket.close
        answers
      end
    end
  end
end
