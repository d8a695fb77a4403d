# frozen_string_literal: true

require "heddle/protection"
require "heddle/scheduler"
require "heddle/stall"
require "heddle/watch_thread"

module Heddle
  # Reports stalls of event loops. `Heddle.enable :stall_report` switches the reports on. Each stall is counted by cause
  # and by endpoint, and logged in one line, but each endpoint gets at most one line a minute.
  module Stalls
    # A tick of the loop that takes at least this many seconds counts as a stall.
    THRESHOLD = 0.05
    # Minimum number of seconds between two log lines about the same endpoint or, outside of requests, the same place.
    INTERVAL = 60
    # Maximum number of stalls that {recent} returns.
    RECENT = 100
    # Maximum number of endpoints that are counted separately; stalls of further endpoints are counted as OTHERS.
    ENDPOINTS = 200
    OTHERS = "(others)"
    # Maximum number of endpoints and places for which the time of the last line is stored.
    PLACES = 500
    # Matches frames of interactive consoles and debuggers. Stalls with such a frame are not logged, because the log
    # line would appear in the middle of the prompt.
    DEBUGGERS = %r{/(?:irb|reline)(?:-\d[^/]*/lib/\w+)?[./]|/gems/(?:debug|pry|byebug)-\d}

    # A number of stalls, their total seconds, and the longest one.
    Count = Struct.new(:count, :seconds, :longest) do
      def add(seconds)
        self.count += 1
        self.seconds += seconds
        self.longest = [longest, seconds].max
      end
    end

    # The time of an endpoint's last log line, and the number of its stalls since then.
    Line = Struct.new(:at, :unreported)
    private_constant :INTERVAL, :RECENT, :ENDPOINTS, :OTHERS, :PLACES, :DEBUGGERS, :Count, :Line

    @lock = Thread::Mutex.new
    @lines = {}
    @report_queued = false

    # The protection :stall_report.
    #
    # @api private
    module Switch
      class << self
        # @return [#call, nil] a callable that gets each logged stall
        attr_accessor :observer
        # @return [Float] stalls that began before this time (CLOCK_MONOTONIC) are neither counted nor reported
        attr_accessor :since

        # @param thread [Thread] a thread of Heddle that computes, and so may delay the event loops
        attr_writer :own_thread
        # @param time [Float] the time (CLOCK_MONOTONIC) when the last `own_thread` ended
        attr_writer :own_work_until

        # @return [Boolean] whether a thread of Heddle may have caused this stall
        def own?(stall)
          stall.cause == :waiting_for_gvl && (@own_thread&.alive? || stall.began < @own_work_until)
        end

        # @param threshold [Numeric] a tick that takes at least this many seconds counts as a stall
        # @return [void]
        def enable(threshold: THRESHOLD)
          WatchThread.threshold = threshold
        end

        # @return [void]
        def disable
          WatchThread.threshold = nil
        end

        # @return [Boolean]
        def enabled? = !WatchThread.threshold.nil?

        # @return [Hash{Symbol => Object}]
        def status = { threshold: WatchThread.threshold, stalls: Stalls.statistics[:count] }
      end
      @own_work_until = @since = 0.0
      Protection.register(:stall_report, self)
    end

    class << self
      # @return [Hash{Symbol => Object}] since the start of the process or {reset}: `count`, `seconds` (in total) and
      #   `longest`; and these three values `by_cause` ({Stall::CAUSES}) and `by_endpoint` ({Stall#endpoint})
      def statistics
        collect do
          by_cause = @by_cause.transform_values(&:to_h)
          { **@total.to_h, by_cause:, by_endpoint: @by_endpoint.transform_values(&:to_h) }
        end
      end

      # @return [Array<Stall>] the last 100 stalls, the oldest one first
      def recent
        collect { @recent.dup }
      end

      # Resets all counts.
      # @return [void]
      def reset
        Native.take_stalls
        @total = Count.new(0, 0.0, 0.0)
        @by_cause = Stall::CAUSES.to_h { |cause, _| [cause, Count.new(0, 0.0, 0.0)] }
        @by_endpoint = {}
        @recent = []
        @unreported = []
        @lines.clear
      end

      private

      # Called from C, on the loop's fiber, when there are new stalls.
      def noted(scheduler)
        return if @report_queued

        @report_queued = true
        scheduler.spawn(method(:report))
      end

      # Fetches the new stalls from the extension and counts them. The lock is needed, because a thread may read the
      # counts while another one reports stalls.
      def collect
        @lock.synchronize do
          stalls = Native.take_stalls.map { |found| Stall.new(found) }
          stalls.each { |stall| @unreported << count(stall) if stall.began >= Switch.since }
          @unreported.shift until @unreported.size <= RECENT
          yield if block_given?
        end
      end

      def count(stall)
        @total.add(stall.seconds)
        @by_cause.fetch(stall.cause).add(stall.seconds)
        endpoint = stall.endpoint
        endpoint = OTHERS unless @by_endpoint.key?(endpoint) || @by_endpoint.size < ENDPOINTS
        (@by_endpoint[endpoint] ||= Count.new(0, 0.0, 0.0)).add(stall.seconds)
        @recent.shift if @recent.size >= RECENT
        @recent << stall
        stall
      end

      def report
        @report_queued = false
        collect
        while (stall = @unreported.shift)
          next unless line_for?(stall)

          Protection.report(stall)
          Switch.observer&.call(stall)
        end
        enabled = Protection.enabled
        Offload::Switch.take_in_place.each { |call| Protection.report(call) } if enabled.include?(:offload)
        CallbackReport::Switch.take.each { |wait| Protection.report(wait) } if enabled.include?(:callback_report)
      end

      # Decides whether the stall gets a log line. If so, stores in the stall how many stalls of the same endpoint
      # (outside of requests: of the same place) got no line since that endpoint's last line.
      def line_for?(stall)
        return false if Switch.own?(stall) || stall.backtrace.any? { |frame| DEBUGGERS.match?(frame) }

        now = MonotonicClock.now
        key = stall.request ? stall.endpoint : [stall.cause, stall.place]
        line = @lines[key]
        if line && now - line.at < INTERVAL
          line.unreported += 1
          return false
        end

        stall.unreported = line.unreported if line
        @lines.delete(key)
        @lines.shift if @lines.size >= PLACES
        @lines[key] = Line.new(now, 0)
        true
      end
    end

    reset
  end
end
