# frozen_string_literal: true

# These files are loaded at the start. Later, while the application computes, each file access of require would wait for
# the GVL.
require "heddle/callback_report"
require "heddle/databases"
require "heddle/databases/pools"
require "heddle/server/statistics"

module Heddle
  class Server
    # The status of a serving process at one moment, as plain values for JSON. Any thread may build it, so that it is
    # available while the loop does not respond.
    class WorkerStatus
      include MonotonicClock

      # Maximum number of listed requests, the oldest ones first.
      REQUESTS = 50
      # Maximum number of lines of the application's code that show where a request is.
      LINES = 3
      # Maximum number of listed native functions, those with the most time first.
      FUNCTIONS = 20
      # Maximum number of listed responses, the slowest ones first.
      SLOWEST = 16
      # Maximum number of listed origins (such as `https://example.com`) of HTTP::Client, and the name under which all
      # others are added up.
      ORIGINS = 50
      OTHERS = "other"
      PLACE = /\A.*?:\d+/
      # The counters of HTTP::Engine that are added up over all loops, besides the number of requests.
      SUMS = %i[answers rejections latencies durations latency_sum spent endpoints spooled websockets].freeze
      MINUTE = 60
      private_constant :MINUTE, :REQUESTS, :LINES, :FUNCTIONS, :SLOWEST, :ORIGINS, :OTHERS, :PLACE, :SUMS

      # Lists the origins that were used first, and adds up the counters of all others. An origin never moves from one
      # group to the other, so no counter falls.
      #
      # @param statistics [Hash{String => Hash}] the counters of HTTP::Client for each origin
      # @return [Array<Hash{Symbol => Object}>]
      def self.list_origins(statistics)
        listed = statistics.first(ORIGINS)
        others = statistics.values.drop(ORIGINS)
        listed << [OTHERS, others.reduce { |sum, one| Statistics.add(sum, one) }] if others.any?
        listed.map { |origin, counts| { origin:, **counts } }
      end

      # @param server [Server]
      # @param log [Log]
      def initialize(server, log)
        @server = server
        @log = log
        @started = Time.now.to_f
        @began = now
      end

      # @return [Hash{Symbol => Object}] times in seconds, memory in bytes
      def to_h
        statistics = @server.statistics
        {
          pid: Process.pid, started: @started, uptime: now - @began, state: state(statistics), version: VERSION,
          ruby: RUBY_VERSION, jit:, selector: @server.selector&.to_s, urls: @server.urls, **counted, **statistics.to_h,
          clients_gone: @log.gone + statistics.to_h.fetch(:clients_gone, 0), **running,
          memory: Memory.used, pss: Memory.proportional, cpu: Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID),
          gc:, threads: Thread.list.size, protection:, unprotected: @server.unprotected,
          offload:, stalls:, slowest:, callbacks:, pools: Databases::Pools.all,
          pubsub_published: PubSub::History.published, http_clients:, events: @log.counts
        }
      end

      private

      def state(statistics)
        return "stopping" if @server.stopping?
        return "starting" unless statistics

        statistics[:reserve] == :parked ? "reserve" : "running"
      end

      def counted
        engines = @server.engines
        return {} if engines.empty?

        sums = [:requests, *SUMS].to_h do |name|
          [name, engines.map(&name).reduce { |sum, one| Statistics.add(sum, one) }]
        end
        { started_requests: sums.delete(:requests), **sums, durations: sums[:durations].to_a,
          body_disk_used: engines.map(&:body_disk_used).max }
      end

      # The running requests: how many there are of each method and scheme, and the oldest ones in detail.
      def running
        found = @server.running_requests
        active = found.map { |_, (method, _, _, _, _, scheme)| [text(method), scheme] }.tally
        { active: active.to_a, requests: requests(found) }
      end

      def requests(found)
        found.max_by(REQUESTS) { |_, (_, _, age)| age }.map do |fiber, (method, target, age, client, status), thread|
          { method: text(method), target: text(target), age: age.round(6), client:, status:,
            at: application_lines(thread || fiber) }
        end
      end

      # Returns the lines of the application's code where a thread or a fiber waits or computes. In a backtrace, a C
      # method has the file and line of its caller. So if lines that follow each other have the same place, only the
      # last of them is kept, which is the caller's.
      def application_lines(executing)
        lines = (executing.backtrace || []).map { |line| text(+line) } # a path may contain any bytes
        lines.reject! { |line| Concurrency.own_line?(line) || line.start_with?("<internal:") }
        lines.slice_when { |one, other| one[PLACE] != other[PLACE] }.first(LINES).map(&:last)
      end

      # Completed requests of the last minutes, the slowest first.
      def slowest
        found = @server.engines.flat_map(&:slowest).max_by(SLOWEST) { |_, seconds| seconds }
        found.map do |request, seconds, ago, status|
          { request: text(request), seconds: seconds.round(6), ago: ago.round(3), status: }
        end
      end

      def describe_stall(stall)
        { cause: stall.cause, ago: (now - stall.began).round(3), seconds: stall.seconds.round(3),
          request: stall.request, place: stall.place }
      end

      def text(bytes) = bytes.force_encoding(Encoding::UTF_8).scrub("?")

      def gc
        stat = GC.stat
        { count: stat[:count], minor: stat[:minor_gc_count], major: stat[:major_gc_count], time: stat[:time] / 1e3,
          allocated: stat[:total_allocated_objects], live: stat[:heap_live_slots] }
      end

      # The protections that are on. While there is no other worker, the handoff (moving connections to another worker)
      # does nothing, so it is left out.
      def protection = Protection.enabled.reject { |name| name == :handoff && Handoff.status[:reason] }

      # Offloaded native calls; nil when offload is off.
      def offload
        return unless Protection.enabled.include?(:offload)

        missing = Offload.status[:missing].map { |lost| lost[:function] }
        functions = Offload.functions
        { **Offload.threads, missing:, functions: functions.first(FUNCTIONS), libraries: libraries(functions) }
      end

      def libraries(functions)
        functions.group_by { |one| one.values_at(:library, :trust) }.map do |(library, trust), calls|
          { library:, trust:, calls: calls.sum { |one| one[:calls] }, offloaded: calls.sum { |one| one[:offloaded] } }
        end
      end

      # The counts of stalls, while they are recorded, and the stalls of the last minute.
      def stalls
        return unless Protection.enabled.include?(:stall_report)

        recent = Stalls.recent.select { |one| now - one.began - one.seconds < MINUTE }
        { **Stalls.statistics, recent: recent.map { |one| describe_stall(one) } }
      end

      # Waits in callbacks of native libraries, while they are recorded.
      def callbacks = (CallbackReport.status[:by_library] if Protection.enabled.include?(:callback_report))

      # If HTTP::Client is not loaded, the program has not used it.
      def http_clients = HTTP.autoload?(:Client) ? [] : WorkerStatus.list_origins(HTTP::Client.statistics)

      def jit = ("YJIT" if defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?)
    end
  end
end
