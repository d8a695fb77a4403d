# frozen_string_literal: true

require "net/http"

module Bench
  module Rows
    # A thousand requests of Ruby's own HTTP client at once, to a server that takes its time. One at a time they are
    # what the row `blocking` says; there the count is cut so that it ends.
    class Gets < Row
      def self.variants = [0, 10, 50, 100, 500].map { |delay| new(delay) }

      def initialize(delay)
        super()
        @delay = delay
      end

      def key = "gets-#{@delay}"

      def title = "1,000 Net::HTTP GETs, the server answers after #{@delay} ms"

      def unit = "req/s"

      def better = :higher

      def core = 0

      def details = %i[cpu_us]

      def sizes(quick:) = { requests: quick ? 200 : 1_000, delay: @delay / 1000.0 }

      def around(_quick, &block) = DelayServer.run { |port| yield({ port: }) }

      def measure(contestant, size)
        count = contestant.key == "blocking" ? few(size) : size[:requests]
        port = DelayServer.own_port(size[:port])
        get_all(contestant, port, count, size[:delay]) # as many fibers as later: their stacks and the heap are there
        answered = 0
        seconds, cpu = timed { answered = get_all(contestant, port, count, size[:delay]) }
        check(answered, count, "requests were answered")
        { value: answered / seconds, cpu_us: cpu * 1e6 / answered }
      end

      private

      # What fits into about two seconds, one after the other.
      def few(size) = size[:delay].zero? ? size[:requests] : (2 / size[:delay]).ceil.clamp(1, size[:requests])

      # @return [Integer] how many were answered
      def get_all(contestant, port, count, delay)
        answered = 0
        contestant.run { count.times { contestant.spawn { answered += 1 if get(port, delay) } } }
        answered
      end

      def get(port, delay) = Net::HTTP.get(URI("http://127.0.0.1:#{port}/#{delay}")) == DelayServer::BODY
    end
  end
end
