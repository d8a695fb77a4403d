# frozen_string_literal: true

require "heddle/protection"
require "heddle/native_libraries"
require "heddle/own_code"
require "heddle/stalls"

module Heddle
  # Reports Ruby code that waits, or starts a task, in a callback of a native library. During such a wait
  # another fiber of the loop runs, and may enter the library while the first call is under way on the same thread.
  # `Heddle.enable :callback_report` switches the reports on. Each call site is reported once, like a stall. It does not
  # report libraries in {NativeLibraries.reentrant}, a library's own waits, or waits with unknown frames.
  module CallbackReport
    # A call site that was reported.
    #
    # @!attribute library [String] path of the library
    # @!attribute function [String, nil] its function, where the library exports it
    # @!attribute method_name [String, nil] the method in C that has called Ruby code
    # @!attribute place [String] the innermost line of the application or a gem
    Wait = Data.define(:library, :function, :method_name, :place) do
      # @return [Symbol] the name of its event (docs/events.md)
      def event = :callback_switch

      # @return [Hash{Symbol => Object}] the fields of the event
      def fields = { library: File.basename(library), caller: called, place: }

      # @return [String] a line for a log
      def to_s = Events::TABLE.fetch(event).text(fields)

      # @return [String] what to do about it
      def advice
        wait = "wait and start tasks before or after the call, not inside it"
        return wait if NativeLibraries.not_reentrant.any? { |name| File.basename(name) == own_name }

        "#{wait}; if the library keeps no state per thread: Heddle::NativeLibraries.reentrant += [#{own_name.dump}]"
      end

      private

      def called
        return "an unknown function" unless method_name || function

        [method_name || "its function", function && "(#{function})"].compact.join(" ")
      end

      def own_name = File.basename(library, ".*")
    end

    # How many call sites {recent} keeps.
    RECENT = 100
    private_constant :RECENT

    # The protection :callback_report.
    #
    # @api private
    module Switch
      @recent = []

      class << self
        # If this platform does not support it, {status} has the reason.
        # @return [void]
        def enable
          @reason = unavailable
          Native.report_callbacks(true) unless @reason
          @enabled = true
        end

        # Also forgets the reported call sites.
        # @return [void]
        def disable
          Native.report_callbacks(false)
          @recent = []
          @enabled = false
        end

        # @return [Boolean]
        def enabled? = @enabled || false

        # @see CallbackReport.status
        def status
          counts = Native.callback_waits.each_with_object(Hash.new(0)) do |(path, waits), all|
            all[File.basename(path)] += waits
          end
          { waits: counts.values.sum, by_library: counts, reason: @reason }.compact
        end

        # @see CallbackReport.recent
        def recent
          take
          @recent.dup
        end

        # @return [Array<Wait>] the waits that were not reported yet
        def take
          found = Native.take_callbacks.map { |fields| Wait.new(*fields) }
          @recent = (@recent + found).last(RECENT)
          found
        end

        private

        def unavailable
          return if Native.find_interpreter(-> { Native.note_interpreter }) { Native.note_interpreter }

          "the native frames of a fiber can't be recognized on this platform"
        end
      end
      Protection.register(:callback_report, self)
    end

    class << self
      # @return [Array<Wait>] the last reported call sites, oldest first
      def recent = Switch.recent

      # @return [Hash{Symbol => Object}] `waits`: how many were detected; `by_library`: the same by the library's file
      #   name; `reason`: why none can be detected
      def status = Switch.status
    end
  end
end
