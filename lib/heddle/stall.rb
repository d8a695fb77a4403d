# frozen_string_literal: true

module Heddle
  # A call or computation that blocked an event loop for too long.
  class Stall
    # The reasons why a loop was blocked, and their texts in reports.
    CAUSES = {
      native: "a native call that released Ruby's lock",
      native_with_gvl: "a native call that held Ruby's lock",
      ruby: "Ruby code",
      waiting_for_gvl: "another thread held Ruby's lock",
      garbage_collection: "garbage collection"
    }.freeze

    # @return [Symbol] one of {CAUSES}
    attr_reader :cause
    # @return [Float] the time when it began, in seconds of CLOCK_MONOTONIC
    attr_reader :began
    # @return [Float] its duration, in seconds
    attr_reader :seconds
    # @return [String, nil] method and path of the request in which it occurred, such as "GET /users/1"; nil outside of
    #   requests
    attr_reader :request
    # @return [Array<String>] "path:line:label" of the Ruby frames, innermost first: the position of the fiber during
    #   the stall; if native code held Ruby's lock, just after the stall. Empty if no backtrace was taken.
    attr_reader :backtrace
    # @return [String, nil] the file name of a native library that is not re-entrant ({NativeLibraries}), if a wait in
    #   its callback blocked the loop; otherwise nil
    attr_reader :library

    # @return [Integer] the number of stalls of the same endpoint that were not logged since the endpoint's last log
    #   line
    attr_accessor :unreported

    # @param found [Array] the record of the extension: cause, begin, duration, request, backtrace, library
    def initialize(found)
      @unreported = 0
      @cause, @began, @seconds, request, place, library = found
      @library = File.basename(library.scrub).freeze unless library.to_s.empty?
      @request = request.scrub.freeze unless request.empty?
      @backtrace = place.scrub.lines(chomp: true).freeze
    end

    # @return [String, nil] "path:line in label" of the innermost frame in the application's code, or else in a gem's;
    #   nil if only Ruby's and Heddle's own code ran, or no backtrace was taken
    def place
      frame = backtrace.find { |line| !helper?(line) && !line.start_with?(*GEMS) } ||
              backtrace.find { |line| !helper?(line) } or return
      path, line, label = frame.match(/\A(.+):(\d+):(.*)\z/)&.captures
      "#{path.delete_prefix(WorkingFolder.started)}:#{line}#{" in #{label}" unless label.to_s.empty?}" if path
    end

    # @return [String] the request's label: method and path, in which `:id` replaces numbers and other IDs; outside of
    #   requests "(no request)". Stalls are counted by endpoint
    def endpoint
      request ? Native.request_label(request).scrub : "(no request)"
    end

    # @return [Symbol] the name of its event (docs/events.md)
    def event = :stall

    # @return [Hash{Symbol => Object}] the fields of the event
    def fields
      { duration: seconds, cause:, description: what, request:, place:, library:,
        unreported: (unreported if unreported > 0),
        endpoint: request ? endpoint : ("code outside of requests" if unreported > 0) }
    end

    # @return [String] a line for a log
    def to_s = Events::TABLE.fetch(event).text(fields)

    # @return [String] what to do about it
    def advice
      return "read all data before you call the library (docs/stalls.md#waits-in-native-callbacks)" if library

      case cause
      when :native
        return "Heddle.enable :offload lets other fibers run during such a call" unless on?(:offload)

        "this call could not be offloaded automatically (docs/offload.md); run it in Heddle.offload { }"
      when :native_with_gvl
        "Heddle can't interrupt such a call: split the work, or do it in a job"
      when :ruby
        return "Heddle.enable :preempt lets other fibers run meanwhile" unless on?(:preempt)

        "Heddle must not interrupt this code: a C extension called it (docs/stalls.md#native-callbacks), or it runs " \
          "in without_preemption or Fiber.blocking"
      when :garbage_collection
        "garbage collection visits every live object: keep fewer objects, or tune Ruby's RUBY_GC_* variables"
      else
        "another thread of this process computes: move its work to another process, or set RUBY_THREAD_TIMESLICE=10 " \
        "(Ruby >= 3.4)"
      end
    end

    private

    def what
      return CAUSES.fetch(cause) unless library

      "a wait in a callback of #{library}, during which no other fiber may run, because the library is not re-entrant"
    end

    # Path prefixes of Ruby's standard library and of Heddle. {#place} skips frames of such files, except those of
    # Heddle's demo, and returns the line of the application that called them.
    HELPERS = ["<internal:", "#{RbConfig::CONFIG["rubylibdir"]}/", "#{__dir__}/"].freeze
    DEMO = "#{__dir__}/cli/demo".freeze
    GEMS = (defined?(Gem) ? [Gem.dir, *Gem.path].uniq : []).map { |path| "#{path}/" }.freeze
    private_constant :HELPERS, :DEMO, :GEMS

    def helper?(line) = line.start_with?(*HELPERS) && !line.start_with?(DEMO)

    def on?(name) = Protection.enabled.include?(name)
  end
end
