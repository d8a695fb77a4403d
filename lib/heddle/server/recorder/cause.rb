# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # Finds out why a request was slow or a loop stalled. For a request: on which part of its time account it has
      # spent most time, in which line, and which other request delayed it. A part is a kind of time, such as `query` or
      # `running`. A stretch is a period that a fiber has spent on one part.
      class Cause
        # `reason`: a clause such as "Ruby code ran for 20 ms". `place`: the file and line in the application.
        # `culprit`: the other request that caused the delay; nil: there is none.
        Found = Data.define(:reason, :place, :culprit)
        WAITS = {
          checkout: "a connection of a pool", query: "the database", http: "another server over HTTP", redis: "Redis",
          dns: "a name server", sleep: "the end of a sleep", lock: "a lock", process: "a child process", file: "a file",
          io: "a socket or pipe", client: "the client", thread: "its own thread, which ran the application",
          offloaded: "native code on another thread"
        }.freeze
        # OTHERS_RUN: parts in which a request waits because other fibers run. RELEASED: parts that end when another
        # fiber releases a resource.
        OTHERS_RUN = %i[ready preempted queued].freeze
        RELEASED = %i[lock checkout].freeze
        # If one request waits for another, which waits for a third and so on, at most this many of these waits are
        # followed.
        DEPTH = 8
        # Samples (stacks of running code) explain a period only if they cover more than this share of it.
        SAMPLED_SHARE = 0.4
        # Maximum number of stretches that are examined for one wait or request, so that a long queue does not cause
        # unlimited work.
        MAX_EXAMINED = 100
        private_constant :OTHERS_RUN, :RELEASED, :DEPTH, :SAMPLED_SHARE, :MAX_EXAMINED

        # @param snapshot [Snapshot]
        def initialize(snapshot)
          @snapshot = snapshot
          @own = snapshot.stretches.reject { |one| one.task || one.request.zero? }.group_by(&:request)
          @running = snapshot.stretches.select { |one| one.part == :running && one.request != 0 }
          # Leaves out threads that run no code of the application or of a gem: they are internal threads of Heddle or
          # Ruby.
          @samples = snapshot.samples.select { |one| one.place || one.task || one.request != 0 }.group_by(&:request)
        end

        # Explains a slow request.
        # @param request [Integer] its number
        # @param account [Hash{Symbol => Object}] its time account
        # @param ended [Float] when it ended, in seconds of the monotonic clock
        # @return [Found]
        def of(request, account, ended)
          began = ended - account[:total]
          # The first of PARTS is `proxy`, which `total` does not include.
          parts = account.slice(*Account::PARTS.drop(1)).select { |_, seconds| seconds.positive? }
          libraries = account[:libraries].keys.map { |name| ::File.basename(name) }
          explain(request, began, ended, parts, libraries:)
        end

        # Explains a stall.
        # @param stall [Stall]
        # @return [Found]
        def of_stall(stall)
          found = computed(stall.began, stall.began + stall.seconds, nil) ||
                  Found.new("#{Stall::CAUSES.fetch(stall.cause)} ran for #{ms(stall.seconds)}", nil, nil)
          found.place ? found : found.with(place: stall.place)
        end

        # @param one [Snapshot::Stretch] a stretch in which a fiber of a request waits
        # @return [Snapshot::Stretch, nil] what another fiber did, of the same or of another request, that made this
        #   fiber wait; nil: unknown
        def behind(one)
          if OTHERS_RUN.include?(one.part)
            others(one).max_by { |other| overlap(other, one.began, one.ended) }
          elsif RELEASED.include?(one.part) && !one.timed_out
            others(one, from: one.ended).first
          end
        end

        private

        def explain(request, began, ended, parts, depth: 0, libraries: [])
          outside_requests(request, began, ended, parts) ||
            case (part = parts.max_by(&:last)&.first)
            when nil then Found.new("nothing was recorded", nil, nil)
            when :running, :gc then ran(request, began, ended)
            when :preempted then gave_way(request, began, ended, parts[part])
            when :received then Found.new("the client took #{ms(parts[part])} to send the request", nil, nil)
            when *OTHERS_RUN then waited_behind(request, began, ended, parts[part])
            else waited(request, part, began, ended, depth, libraries)
            end
        end

        # Blames code outside of requests (another thread, or a fiber without a request) if it ran at least as long as
        # the longest part of the request's time. Before the comparison, the time that such code ran during a part is
        # subtracted from that part. Even a running request can be delayed: a thread may take the GVL from it.
        def outside_requests(request, began, ended, parts)
          taken = samples(0, began, ended).sum(&:last)
          return if taken.zero?

          parts = Hash.new(0).update(parts)
          own(request, began, ended).max_by(MAX_EXAMINED, &:seconds).each do |one|
            parts[one.part] -= samples(0, one.began, one.ended).sum(&:last)
          end
          computed(began, ended, 0) if taken >= (parts.values.max || 0)
        end

        def ran(request, began, ended)
          running = own(request, began, ended).select { |one| one.part == :running }
          total = running.sum { |one| overlap(one, began, ended) }
          collected = own(0, began, ended).sum { |gc| running.sum { |one| overlap(one, gc.began, gc.ended) } }
          found = computed(began, ended, request) if samples(request, began, ended).sum(&:last) > total * SAMPLED_SHARE
          place = found ? found.place : longest(running, began, ended).first
          return Found.new("garbage collection took #{ms(collected)}", place, nil) if collected > total / 2

          found || Found.new("Ruby code ran for #{ms(total)}", place, nil)
        end

        # Explains a request that was preempted: it had computed for too long, so other fibers ran.
        def gave_way(request, began, ended, seconds)
          found = ran(request, began, ended)
          found.with(reason: "#{found.reason}, and other fibers ran for #{ms(seconds)} while it was preempted")
        end

        # @param request [Integer, nil] nil: any request
        # @return [Found, nil] names the code that ran most in this period, by the sampled stacks; nil: there are no
        #   stacks of this period
        def computed(began, ended, request)
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
          Found.new("#{code} ran for #{ms(found.sum(&:last))}", place, nil)
        end

        def majority(weighed)
          weighed.group_by { |one, _| yield(one) }.max_by { |_, all| all.sum(&:last) }.first
        end

        def waited_behind(request, began, ended, seconds)
          waits = own(request, began, ended).select { |one| OTHERS_RUN.include?(one.part) }
          behind = waits.flat_map do |one|
            others(one).map { |other| [other.request, overlap(other, one.began, one.ended)] }
          end
          culprit, = behind.group_by(&:first).max_by { |_, all| all.sum(&:last) }
          name = @snapshot.name(culprit) if culprit
          text = "it waited #{ms(seconds)} while #{name || "other code"} ran"
          found = culprit ? ran(culprit, began, ended) : computed(began, ended, 0)
          found ? found.with(reason: "#{text}: #{found.reason}", culprit: name) : Found.new(text, nil, nil)
        end

        def waited(request, part, began, ended, depth, libraries)
          waits = own(request, began, ended).select { |one| one.part == part }
          place, here, seconds = longest(waits, began, ended)
          times = " (#{here.size} times)" if here && here.size > 1
          what = WAITS.fetch(part)
          what += " (#{libraries.join(", ")})" if part == :offloaded && libraries.any?
          found = Found.new("it waited #{ms(seconds || 0)}#{times} for #{what}", place, nil)
          return found unless RELEASED.include?(part) && here && depth < DEPTH

          explain_holders(found, here.max_by(&:seconds), depth)
        end

        def explain_holders(found, one, depth)
          turns = holders(one)
          holder, began, ended, part, seconds = longest_part(turns)
          return found unless holder

          why = explain(holder, began, ended, { part => seconds }, depth: depth + 1)
          name = @snapshot.name(holder)
          others = turns.map(&:first).uniq.size - 1
          least = "at least " if turns.size == MAX_EXAMINED
          holding = "#{name}#{" and #{least}#{others} more" if others.positive?}"
          found.with(reason: "#{found.reason}#{" at #{found.place}" if found.place}, held by #{holding}: #{why.reason}",
                     place: why.place || found.place, culprit: why.culprit || name)
        end

        # Adds up the time of each part over all requests with the same method and path. For the largest sum, returns
        # the request that has contributed most to it.
        def longest_part(turns)
          spent = turns.flat_map do |holder, began, ended|
            parts = own(holder, began, ended).group_by(&:part)
            parts.map { |part, all| [holder, began, ended, part, all.sum { |one| overlap(one, began, ended) }] }
          end
          alike = spent.group_by { |holder, _, _, part| [@snapshot.name(holder), part] }.values
          alike.max_by { |all| all.sum(&:last) }&.max_by(&:last)
        end

        # Returns the requests that held the awaited resource during the wait, the last one first, each with the period
        # in which it held the resource. If a holder itself had to wait at the same place before, its period begins at
        # the end of that wait. Tasks of the same request don't count.
        def holders(one)
          found = []
          wait = one
          while wait && found.size < MAX_EXAMINED && (holder = releaser(wait))
            ended = wait.ended
            wait = own(holder, one.began, ended).reverse_each.find do |other|
              other.part == one.part && other.place == one.place && other.ended < ended && releaser(other)
            end
            found << [holder, wait ? wait.ended : one.began, ended]
          end
          found
        end

        def releaser(one) = behind(one)&.request.then { |request| request unless request == one.request }

        # @return [Array(String, Array<Stretch>, Float)] the place with the most time, its stretches, and the seconds;
        #   three nils without stretches
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

        # @return [Array<Array(Sample, Float)>] the samples of this period, each with its seconds within the period
        def samples(request, began, ended)
          @samples.fetch(request, []).filter_map do |one|
            [one, overlap(one, began, ended)] if one.ended > began && one.began < ended
          end
        end

        # Returns the stretches between `from` and the end of `one` in which other fibers ran, at most MAX_EXAMINED. The
        # binary search is possible because running stretches don't overlap and are sorted by their ends.
        def others(one, from: one.began)
          index = @running.bsearch_index { |other| other.ended >= from } or return []
          found = []
          while found.size < MAX_EXAMINED && (other = @running[index]) && other.began <= one.ended
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
