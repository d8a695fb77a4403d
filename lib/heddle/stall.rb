# frozen_string_literal: true

module Heddle
  # A call or computation that blocked a loop for too long.
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
    # @return [Float] when it began, in seconds of CLOCK_MONOTONIC
    attr_reader :began
    # @return [Float] how long it took, in seconds
    attr_reader :seconds
    # @return [String, nil] method and path of the request that was served, such as "GET /users/1"
    attr_reader :request
    # @return [Array<String>] "path:line:label" of the Ruby frames, innermost first: where the fiber was during the
    #   stall; if native code held Ruby's lock, just after it. Empty if it was not sampled.
    attr_reader :backtrace
    # @return [String, nil] the file of the library in whose callback a wait blocked the loop, because no other fiber
    #   may enter the library meanwhile ({NativeLibraries})
    attr_reader :library

    # @return [Integer] how many stalls of the same endpoint were not logged since its last log line
    attr_accessor :unreported

    # @param found [Array] what the extension has noted
    def initialize(found)
      @unreported = 0
      @cause, @began, @seconds, request, place, library = found
      @library = File.basename(library.scrub).freeze unless library.to_s.empty?
      @request = request.scrub.freeze unless request.empty?
      @backtrace = place.scrub.lines(chomp: true).freeze
    end

    # @return [String, nil] "path:line in label", the innermost line of the application, else of a gem; nil: only Ruby's
    #   and Heddle's own code ran, or the stall was not sampled
    def place
      frame = backtrace.find { |line| !helper?(line) && !line.start_with?(*GEMS) } ||
              backtrace.find { |line| !helper?(line) } or return
      path, line, label = frame.match(/\A(.+):(\d+):(.*)\z/)&.captures
      "#{path.delete_prefix(WorkingFolder.started)}:#{line}#{" in #{label}" unless label.to_s.empty?}" if path
    end

    # @return [String] the request's label, by which stalls are counted: its method and path, with `:id` in place of
    #   numbers and the like
    def endpoint
      request ? Native.request_label(request).scrub : "(no request)"
    end

    # @return [Symbol] the name of its event (docs/events.md)
    def event = :stall

    # @return [Hash{Symbol => Object}] the fields of the event
    def fields
      { duration: seconds, cause:, description: what, request:, place:, library:,
        unreported: (unreported if unreported > 0), endpoint: request ? endpoint : ("these" if unreported > 0) }
    end

    # @return [String] a line for a log
    def to_s = Events::TABLE.fetch(event).text(fields)

    # @return [String] what to do about it
    def advice
      return "read all data before you call the library (docs/stalls.md#waits-in-native-callbacks)" if library

      case cause
      when :native
        return "Heddle.enable :offload lets other fibers run during such a call" unless on?(:offload)

        "it could not be offloaded (docs/offload.md says which calls can't); Heddle.offload { } does it by hand"
      when :native_with_gvl
        "nothing in Ruby can interrupt it: split the work, or do it in a job"
      when :ruby
        return "Heddle.enable :preempt lets other fibers run meanwhile" unless on?(:preempt)

        "Heddle must not interrupt it: an extension in C waited for it (docs/stalls.md#native-callbacks), or it is " \
          "in without_preemption or Fiber.blocking"
      when :garbage_collection
        "it visits every living object: keep fewer, or see Ruby's RUBY_GC_* variables"
      else
        "a thread beside the loop computes: move its work elsewhere, or set RUBY_THREAD_TIMESLICE=10 (Ruby 3.4)"
      end
    end

    private

    def what
      return CAUSES.fetch(cause) unless library

      "a wait that blocked the loop, because it was in a callback of #{library}, a library that is not re-entrant"
    end

    # Path prefixes of Ruby's library and of Heddle (except its demo): {#place} skips such frames and shows the line of
    # the application that called them.
    HELPERS = ["<internal:", "#{RbConfig::CONFIG["rubylibdir"]}/", "#{__dir__}/"].freeze
    DEMO = "#{__dir__}/cli/demo".freeze
    GEMS = [Gem.dir, *Gem.path].uniq.map { |path| "#{path}/" }.freeze
    private_constant :HELPERS, :DEMO, :GEMS

    def helper?(line) = line.start_with?(*HELPERS) && !line.start_with?(DEMO)

    def on?(name) = Protection.enabled.include?(name)
  end
end
