# frozen_string_literal: true

require_relative "ping_pong"

module Bench
  module Rows
    # Whether memory stays where it is over a million operations on sockets.
    class IOMemory < PingPong
      OPERATIONS = 4 # in a round trip

      def key = "io-memory"

      def title = "memory that 1,000,000 reads and writes leave behind"

      def unit = "MB"

      def compared? = false

      def details = []

      def sizes(quick:) = { round_trips: quick ? 10_000 : 1_000_000 / OPERATIONS }

      def measure(contestant, size)
        play(contestant, size[:round_trips] / 10)
        GC.start
        before = ProcessUsage.megabytes or raise "this system does not tell a process's memory"
        answered = play(contestant, size[:round_trips])
        GC.start
        check(answered, size[:round_trips], "answers")
        { value: [ProcessUsage.megabytes - before, 0].max }
      end
    end
  end
end
