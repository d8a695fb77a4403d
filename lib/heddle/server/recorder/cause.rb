# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # Why a request was slow: the part that took most of its time, where, and which other code was behind it.
      class Cause
        # A sentence's end, the place in the application, and the request that was behind it (nil: the request itself,
        # or none).
        Found = Data.define(:reason, :place, :culprit)
        WAITS = {
          checkout: "a connection of a pool", query: "the database", http: "another server over HTTP", redis: "Redis",
          dns: "a name server", sleep: "the end of a sleep", lock: "a lock", process: "a child process", file: "a file",
          io: "a socket or pipe", client: "the client", thread: "its own thread, which ran the application",
          offloaded: "native code on another thread"
        }.freeze
        # The parts in which others run, and those that another fiber ends.
        BEHIND = %i[ready preempted queued].freeze
        GIVEN = %i[lock checkout].freeze
        # A chain of requests that wait for one another is followed so far.
        DEPTH = 8
        # Of the time, for code outside of requests to be the reason, and for samples of stacks to speak for all.
        SHARE = 0.4
        # How many stretches of others are looked at for one wait: in a long queue all waits have the same ones.
        LOOKED_AT = 100
        private_constant :BEHIND, :GIVEN, :DEPTH, :SHARE, :LOOKED_AT

        # @param snapshot [Snapshot]
        def initialize(snapshot)
          @snapshot = snapshot
          @own = snapshot.stretches.reject { |one| one.task || one.request.zero? }.group_by(&:request)
          @running = snapshot.stretches.select { |one| one.part == :running && one.request != 0 }
          # Threads that run no code of the application or of a gem are Heddle's or Ruby's, such as the recorder's.
          @samples = snapshot.samples.select { |one| one.place || one.task || one.request != 0 }.group_by(&:request)
        end

        # @param request [Integer]
        # @param account [Hash{Symbol => Object}] of the request
        # @param ended [Float]
        # @return [Found]
        def of(request, account, ended)
          began = ended - account[:total]
          parts = account.slice(*Account::PARTS.drop(1)).select { |_, seconds| seconds.positive? } # the first: proxy
          libraries = account[:libraries].keys.map { |name| ::File.basename(name) }
          explain(request, began, ended, parts, libraries:)
        end

        # @param stall [Stall]
        # @return [Found]
        def of_stall(stall)
          culprit = stall.request
          found = computed(stall.began, stall.began + stall.seconds, nil, culprit) ||
                  Found.new("#{Stall::CAUSES.fetch(stall.cause)} ran for #{ms(stall.seconds)}", nil, culprit)
          found.place ? found : found.with(place: stall.place)
        end

        # @param one [Snapshot::Stretch] in which a request waits
        # @return [Snapshot::Stretch, nil] the stretch of the other request that it waits behind
        def behind(one)
          if BEHIND.include?(one.part)
            others(one).max_by { |other| overlap(other, one.began, one.ended) }
          elsif GIVEN.include?(one.part)
            others(one, from: one.ended).first
          end
        end

        private

        def explain(request, began, ended, parts, depth: 0, libraries: [])
          beside(request, began, ended) ||
            case (part = parts.max_by(&:last)&.first)
            when nil then Found.new("nothing was recorded", nil, nil)
            when :running, :gc then ran(request, began, ended)
            when :received then Found.new("the client sent the request for #{ms(parts[part])}", nil, nil)
            when *BEHIND then waited_behind(request, began, ended, parts[part])
            else waited(request, part, began, ended, depth, libraries)
            end
        end

        # Another thread, or a fiber without a request, for which it had to wait.
        def beside(request, began, ended)
          waits = own(request, began, ended).reject { |one| one.part == :running }
          taken = waits.sum { |one| samples(0, one.began, one.ended).sum { |_, seconds| seconds } }
          return if taken < (ended - began) * SHARE

          computed(began, ended, 0)
        end

        def ran(request, began, ended)
          running = own(request, began, ended).select { |one| one.part == :running }
          total = running.sum { |one| overlap(one, began, ended) }
          collected = own(0, began, ended).sum { |gc| running.sum { |one| overlap(one, gc.began, gc.ended) } }
          found = computed(began, ended, request) if samples(request, began, ended).sum(&:last) > total * SHARE
          place = found ? found.place : longest(running, began, ended).first
          return Found.new("garbage collection took #{ms(collected)}", place, nil) if collected > total / 2

          found || Found.new("Ruby code ran for #{ms(total)}", place, nil)
        end

        # What the stacks of these times say; nil: there are none. `request` nil: of any.
        def computed(began, ended, request, culprit = nil)
          requests = request ? [request] : @samples.keys
          found = requests.flat_map { |one| samples(one, began, ended) }
          place, here = found.group_by { |one, _| one.place }.max_by { |_, all| all.sum(&:last) }
          return unless here

          activity = majority(here, &:activity)
          method = majority(here) { |one| one.frames.first }
          method = nil if method&.match?(/:\d/)
          one = here.first.first
          code = "#{Stall::CAUSES.fetch(activity)}#{" (#{method})" if method}"
          code += " in another thread" if one.request.zero? && !one.task
          Found.new("#{code} ran for #{ms(found.sum(&:last))}", place, culprit)
        end

        def majority(weighed)
          weighed.group_by { |one, _| yield(one) }.max_by { |_, all| all.sum(&:last) }.first
        end

        def waited_behind(request, began, ended, seconds)
          waits = own(request, began, ended).select { |one| BEHIND.include?(one.part) }
          behind = waits.flat_map do |one|
            others(one).map { |other| [other.request, overlap(other, one.began, one.ended)] }
          end
          culprit, = behind.group_by(&:first).max_by { |_, all| all.sum(&:last) }
          text = "it waited #{ms(seconds)} while"
          return beside_waits(waits, text) unless culprit

          found = ran(culprit, began, ended)
          name = @snapshot.name(culprit)
          found.with(reason: "#{text} #{name} ran: #{found.reason}", culprit: name)
        end

        def beside_waits(waits, text)
          text += " other code ran"
          found = waits.filter_map { |one| computed(one.began, one.ended, 0) }.first
          found ? found.with(reason: "#{text}: #{found.reason}") : Found.new(text, nil, nil)
        end

        def waited(request, part, began, ended, depth, libraries)
          waits = own(request, began, ended).select { |one| one.part == part }
          place, here, seconds = longest(waits, began, ended)
          times = "#{here.size} times " if here && here.size > 1
          what = WAITS.fetch(part)
          what += " (#{libraries.join(", ")})" if part == :offloaded && libraries.any?
          found = Found.new("it waited #{times}#{ms(seconds || 0)} for #{what}", place, nil)
          GIVEN.include?(part) && here && depth < DEPTH ? behind_wait(found, here.max_by(&:seconds), depth) : found
        end

        # The one that had it: whoever waited for it as well only passed it on.
        def behind_wait(found, one, depth)
          holder = behind(one)
          return found if holder.nil? || holder.request == one.request # nil: unknown; else its own task

          parts = Hash.new(0)
          own(holder.request, one.began, one.ended).each do |other|
            parts[other.part] += overlap(other, one.began, one.ended)
          end
          why = explain(holder.request, one.began, one.ended, parts, depth: depth + 1)
          name = @snapshot.name(holder.request)
          found.with(reason: "#{found.reason}#{" at #{found.place}" if found.place}, which #{name} had: #{why.reason}",
                     place: why.place || found.place, culprit: why.culprit || name)
        end

        # @return [Array(String, Array<Stretch>, Float)] the place that took longest
        def longest(stretches, began, ended)
          sum = ->(all) { all.sum { |one| overlap(one, began, ended) } }
          place, here = stretches.group_by(&:place).max_by { |_, all| sum.call(all) }
          [place, here, (sum.call(here) if here)]
        end

        def own(request, began, ended)
          all = request.zero? ? collections : @own.fetch(request, [])
          all.select { |one| one.ended > began && one.began < ended }
        end

        def collections = @collections ||= @snapshot.stretches.select { |one| one.request.zero? }

        # @return [Array<Array(Sample, Float)>] with their seconds of this time
        def samples(request, began, ended)
          @samples.fetch(request, []).filter_map do |one|
            [one, overlap(one, began, ended)] if one.ended > began && one.began < ended
          end
        end

        # The first running stretches of other fibers in that time. They are in the order of their ends, and don't
        # overlap.
        def others(one, from: one.began)
          index = @running.bsearch_index { |other| other.ended >= from } or return []
          found = []
          while found.size < LOOKED_AT && (other = @running[index]) && other.began <= one.ended
            found << other if other.request != one.request || other.task != one.task
            index += 1
          end
          found
        end

        def overlap(one, began, ended) = [[one.ended, ended].min - [one.began, began].max, 0].max

        def ms(seconds) = "#{(seconds * 1_000).round} ms"
      end
    end
  end
end
