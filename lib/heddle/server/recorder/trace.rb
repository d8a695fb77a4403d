# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # Writes a recording in Chrome's trace-event format, for Perfetto and chrome://tracing. Each request has a track.
      # Its tasks, its stacks, and the stacks of its tasks have separate tracks. All stalls share one track, and so do
      # all garbage collections. Arrows point from the code that delayed a request to that request.
      class Trace
        # LEAST: minimum seconds of a wait that gets an arrow. GAP: two stacks with more seconds between them are not
        # joined.
        LEAST = 0.001
        GAP = 0.03
        # An arrow ends this many seconds before the end of its slice (a bar in the viewer). At the end itself, the
        # viewer would attach it to the next slice.
        BEFORE_END = 0.000001
        # The parts of a request's time in which its fiber occupies the loop.
        OCCUPYING = %i[running gc].freeze
        STALLS = 1
        COLLECTIONS = 2
        private_constant :LEAST, :GAP, :BEFORE_END, :OCCUPYING, :STALLS, :COLLECTIONS

        # @param snapshot [Snapshot]
        # @param stalls [Array<Stall>]
        # @param cause [Cause]
        # @param since [Float] stalls that ended before this time are left out
        # @param about [Hash{Symbol => Object}] written to the file as `otherData`
        def initialize(snapshot, stalls, cause, since: 0.0, about: {})
          @snapshot = snapshot
          @stalls = stalls.select { |stall| stall.began + stall.seconds >= since }
          @cause = cause
          @about = about
          @tracks = {}
          @arrows = 0
        end

        # @param io [IO]
        # @return [void]
        def write(io)
          io << "{\"displayTimeUnit\":\"ms\",\"otherData\":" << JSON.generate(@about) << ",\"traceEvents\":["
          separator = "\n"
          each do |event|
            io << separator << JSON.generate(event)
            separator = ",\n"
            Recorder.give_way
          end
          io << "\n]}\n"
        end

        private

        def each(&add)
          @add = add
          @snapshot.stretches.each { |one| add(one) }
          @stalls.each { |stall| add_stall(stall) }
          @snapshot.samples.group_by { |one| [one.request, one.task] }
                   .each { |(request, task), samples| add_stacks(track(request, task, stacks: true), samples) }
          names.each(&add)
        end

        def add(one)
          tid = one.request.zero? ? COLLECTIONS : track(one.request, one.task)
          stretch(one.part, one.began, one.seconds, tid, { place: one.place }.compact)
          arrow(one, tid) if one.request != 0 && one.seconds >= LEAST
        end

        def add_stall(stall)
          stretch("stall", stall.began, stall.seconds, STALLS,
                  { cause: Stall::CAUSES[stall.cause], request: stall.request, place: stall.place }.compact)
        end

        # A frame that consecutive stacks have in common becomes one slice.
        def add_stacks(tid, samples)
          open = []
          before = nil
          samples.each do |one|
            frames = one.frames.reverse
            joined = before && one.began - before.ended < GAP
            same = joined ? open.zip(frames).take_while { |slice, name| slice.first == name }.size : 0
            close(open, same, before, tid)
            frames.drop(same).each { |name| open << [name, one.began, one.activity] }
            before = one
          end
          close(open, 0, before, tid)
        end

        def close(open, depth, last, tid)
          open.slice!(depth..).each do |name, began, activity|
            args = { activity: Stall::CAUSES.fetch(activity) }
            stretch(name, began, last.ended - began, tid, args, category: "stack")
          end
        end

        # Draws an arrow that ends at a wait, and begins at the code that caused the wait: another fiber's, or a stall.
        def arrow(one, tid)
          if (other = @cause.behind(one))
            from = [other.began, one.began].max
            source = track(other.request, other.task)
          elsif one.part == :ready && (stall = stall_during(one))
            from = [stall.began, one.began].max
            source = STALLS
          else
            return
          end
          id = @arrows += 1
          common = { name: one.part == :ready ? "delayed" : "gave way", cat: "culprit", id:, pid: Process.pid }
          @add.call({ **common, ph: "s", ts: micro(from), tid: source })
          @add.call({ **common, ph: "f", bp: "e", ts: micro([one.ended - BEFORE_END, from].max), tid: })
        end

        def stall_during(one)
          @stalls.find { |stall| stall.began < one.ended && stall.began + stall.seconds > one.began }
        end

        def stretch(name, began, seconds, tid, args, category: OCCUPYING.include?(name) ? "runs" : "waits")
          @add.call({ name: name.to_s, cat: category, ph: "X", ts: micro(began), dur: micro(seconds), pid: Process.pid,
                      tid:, args: })
        end

        def track(request, task, stacks: false) = @tracks[[request, task, stacks]] ||= COLLECTIONS + 1 + @tracks.size

        def names
          list = @tracks.map do |(request, task, stacks), tid|
            who = request.zero? ? "the loop outside of requests" : "#{"tasks of " if task}#{@snapshot.name(request)}"
            who = "other threads" if request.zero? && !task
            ["#{"stacks of " if stacks}#{who}", tid]
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
