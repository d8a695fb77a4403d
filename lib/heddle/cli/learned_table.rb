# frozen_string_literal: true

module Heddle
  module CLI
    # The endpoints that have held up their workers, as lines for a person.
    class LearnedTable
      # @param learned [Array<Hash{Symbol => Object}>] see Server::Learned#to_a
      # @param now [Time]
      def initialize(learned, now = Time.now)
        @learned = learned
        @now = now
      end

      # @return [Array<String>]
      def lines
        return ["no endpoint has lately held up a worker by native code"] if @learned.empty?

        ["   score  stalls  last        worker  endpoint", *@learned.map { |one| row(one) }]
      end

      private

      def row(one)
        format("%<score>6.2f s  %<stalls>6d  %<last>-10s  %<worker>6s  %<endpoint>s",
               **one, last: ago(one[:last]), worker: one[:worker] || "any", endpoint: visible(one[:endpoint]))
      end

      def ago(time)
        seconds = [@now.to_f - time, 0].max
        seconds < 120 ? "#{seconds.round} s ago" : "#{(seconds / 60).round} min ago"
      end

      # A client chooses what stands here, and a terminal obeys some of it.
      def visible(text) = text.gsub(/[^[:print:]]/, "?")
    end
  end
end
