# frozen_string_literal: true

module Heddle
  module CLI
    class TopWeb
      # The status of the server, asked for once an interval however many tabs show it.
      class Feed
        # A report, the one before and the seconds between them; or why there is none.
        View = Data.define(:report, :before, :elapsed, :failure)

        # @return [Numeric] seconds
        attr_reader :interval

        # @param client [Server::Control::Client]
        # @param interval [Numeric] seconds
        def initialize(client, interval)
          @client = client
          @interval = interval
          @lock = Thread::Mutex.new
          @view = View.new(nil, nil, nil, nil)
          @at = -Float::INFINITY
        end

        # @return [View]
        def look
          @lock.synchronize do
            time = MonotonicClock.now
            next @view if time - @at < @interval * 0.9

            elapsed = time - @at
            @at = time
            @view = view(elapsed)
          end
        end

        # @return [String] the task tree
        def tasks
          @client.tasks
        rescue Server::Control::Client::NoServerError => e
          e.message
        end

        private

        def view(elapsed)
          report = @client.status
          before = @view.report
          View.new(report, before, before && elapsed, nil)
        rescue Server::Control::Client::NoServerError => e
          View.new(nil, nil, nil, e.message)
        end
      end
    end
  end
end
