# frozen_string_literal: true

require "heddle/protection"
require "heddle/scheduler"
require "heddle/stall"
require "heddle/watch_thread"

module Heddle
  # Reports stalls of a loop. `Heddle.enable :stall_report` switches it on. Each stall is reported in a line, at
  # most one in {INTERVAL} for one endpoint, and counted by cause and by endpoint.
  module Stalls
    # Seconds after which a tick counts as a stall.
    THRESHOLD = 0.05
    # Seconds in which an endpoint, or a place outside of requests, gets at most one log line.
    INTERVAL = 60
    # Stalls that {recent} keeps.
    RECENT = 100
    # Maximum number of endpoints that are counted separately; further ones are counted together.
    ENDPOINTS = 200
    OTHERS = "(others)"
    # Maximum number of endpoints and places for which the last line is remembered.
    PLACES = 500
    # Frames of an interactive console, where a line would be printed into the prompt.
    DEBUGGERS = %r{/(?:irb|reline)(?:-\d[^/]*/lib/\w+)?[./]|/gems/(?:debug|pry|byebug)-\d}

    # A number of stalls, their total seconds, and the longest one.
    Count = Struct.new(:count, :seconds, :longest) do
      def add(seconds)
        self.count += 1
        self.seconds += seconds
        self.longest = [longest, seconds].max
      end
    end

    # When an endpoint got its last line, and how many stalls it had since.
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
        # @return [#call, nil] called with each stall that is logged
        attr_accessor :observer
        # @return [Float] stalls that began before this time are neither counted nor reported
        attr_accessor :since

        # @param thread [Thread] a thread of Heddle that computes beside the loops, and may delay them
        attr_writer :own_thread
        # @param time [Float] when the last such thread ended
        attr_writer :own_work_until

        # @return [Boolean] whether this stall may be Heddle's own
        def own?(stall)
          stall.cause == :waiting_for_gvl && (@own_thread&.alive? || stall.began < @own_work_until)
        end

        # @param threshold [Numeric] seconds after which a tick counts as a stall
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
      # @return [Hash{Symbol => Object}] since the process began: `count`, `seconds`, `longest`, and the same
      #   `by_cause` ({Stall::CAUSES}) and `by_endpoint` ({Stall#endpoint})
      def statistics
        collect do
          by_cause = @by_cause.transform_values(&:to_h)
          { **@total.to_h, by_cause:, by_endpoint: @by_endpoint.transform_values(&:to_h) }
        end
      end

      # @return [Array<Stall>] the last ones, oldest first
      def recent
        collect { @recent.dup }
      end

      # Forgets what was counted.
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

      # Called from C, on the fiber of the loop, when there are new stalls.
      def noted(scheduler)
        return if @report_queued

        @report_queued = true
        scheduler.spawn(method(:report))
      end

      # Takes the extension's new stalls. One thread may read the counts while another reports them.
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

      # Limits the lines for one endpoint (outside of requests: for one place). If the stall gets a line, records in the
      # stall how many got none since the last line.
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
