# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # What was recorded, in Chrome's trace-event format, which Perfetto and chrome://tracing show: a track for each
      # request and for the tasks of each, one for stalls and one for garbage collections, and arrows from the request
      # that held another one up.
      class Trace
        # A shorter time behind others gets no arrow, seconds.
        LEAST = 0.001
        # Parts that end when another fiber gives something back.
        GIVEN = %i[lock checkout].freeze
        # Times in which a fiber keeps the loop.
        KEEPS = %i[running gc].freeze
        STALLS = 1
        COLLECTIONS = 2
        private_constant :LEAST, :GIVEN, :KEEPS, :STALLS, :COLLECTIONS

        Stretch = Data.define(:began, :ended, :request, :part, :task, :place) do
          def seconds = ended - began
        end

        # @param recorded [Array<Array>] of Account.recorded
        # @param names [Hash{Integer => String}] of the requests
        # @param stalls [Array<Stall>]
        def initialize(recorded, names, stalls)
          @stretches = recorded.map { |one| Stretch.new(*one) }
          @names = names
          @stalls = stalls
          @tracks = {}
          @events = []
          @arrows = 0
        end

        # @return [Hash{Symbol => Object}]
        def to_h
          @places = @stretches.to_h { |one| [[one.request, one.task, one.ended], one.place] }
          @running = @stretches.select { |one| one.part == :running && one.request != 0 }
          @stretches.each { |one| add(one) }
          @stalls.each { |stall| add_stall(stall) }
          { traceEvents: [*names, *@events], displayTimeUnit: "ms" }
        end

        private

        def add(one)
          track = one.request == 0 ? COLLECTIONS : track_of(one)
          place = one.part == :running ? one.place : @places[[one.request, one.task, one.began]]
          stretch(one.part, one.began, one.seconds, track, { place: }.compact)
          return if one.request == 0 || one.seconds < LEAST

          culprit = culprit_of(one) or return
          arrow(culprit, one)
        end

        def add_stall(stall)
          return if @stretches.empty? || stall.began + stall.seconds < @stretches.first.began

          stretch("stall", stall.began, stall.seconds, STALLS,
                  { cause: Stall::CAUSES[stall.cause], request: stall.request, place: stall.place }.compact)
        end

        # The fiber that ran for most of the time in which this one was ready; or that gave it what it waited for.
        def culprit_of(one)
          if one.part == :ready
            others(one.began, one.ended, one).max_by do |other|
              [other.ended, one.ended].min - [other.began, one.began].max
            end
          elsif GIVEN.include?(one.part)
            others(one.ended, one.ended, one).first
          end
        end

        def others(began, ended, one)
          @running.select do |other|
            other.began <= ended && other.ended >= began && (other.request != one.request || other.task != one.task)
          end
        end

        def arrow(culprit, one)
          id = @arrows += 1
          from = [culprit.began, one.began].max
          common = { name: one.part == :ready ? "held up" : "gave way", cat: "culprit", id:, pid: Process.pid }
          @events << { **common, ph: "s", ts: micro(from), tid: track_of(culprit) }
          @events << { **common, ph: "f", bp: "e", ts: micro(one.ended), tid: track_of(one) }
        end

        def stretch(name, began, seconds, tid, args)
          @events << { name: name.to_s, cat: KEEPS.include?(name) ? "runs" : "waits", ph: "X", ts: micro(began),
                       dur: micro(seconds), pid: Process.pid, tid:, args: }
        end

        def track_of(one) = @tracks[[one.request, one.task]] ||= COLLECTIONS + 1 + @tracks.size

        def names
          list = @tracks.map do |(request, task), tid|
            ["#{"tasks of " if task}#{@names.fetch(request, "a request")}", tid]
          end
          [["stalls", STALLS], ["garbage collections", COLLECTIONS], *list].map do |name, tid|
            { name: "thread_name", ph: "M", pid: Process.pid, tid:, args: { name: } }
          end
        end

        def micro(seconds) = (seconds * 1_000_000).round(3)
      end
    end
  end
end
