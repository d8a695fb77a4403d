# frozen_string_literal: true

require "heddle/protection"
require "heddle/native_libraries"
require "heddle/own_code"
require "heddle/stalls"

module Heddle
  # Reports Ruby code that waits, or starts a task, in a callback of a native library, if the event loop then runs
  # another fiber before the callback has ended. If this fiber calls the same library, two calls run at once on one
  # thread, which many libraries don't support. `Heddle.enable :callback_report` switches the reports on. Each call site
  # is reported once. There are no reports about libraries in {NativeLibraries.reentrant}, about waits of the library
  # itself, or about waits whose stack frames are unknown.
  module CallbackReport
    # A reported call site.
    #
    # @!attribute library [String] the path of the library
    # @!attribute function [String, nil] the library's function that made the callback, if the library exports it
    # @!attribute method_name [String, nil] the C method that called the Ruby code
    # @!attribute place [String] file and line: the innermost frame of the application or a gem
    Wait = Data.define(:library, :function, :method_name, :place) do
      # @return [Symbol] the name of its event (docs/events.md)
      def event = :callback_switch

      # @return [Hash{Symbol => Object}] the fields of the event
      def fields = { library: File.basename(library), caller: called, place: }

      # @return [String] a line for a log
      def to_s = Events::TABLE.fetch(event).text(fields)

      # @return [String] what to do about it
      def advice
        wait = "wait, and start tasks, before or after the call, not in its callback"
        return wait if NativeLibraries.not_reentrant.any? { |name| File.basename(name) == own_name }

        "#{wait}; if the library keeps no state per thread, add it: Heddle::NativeLibraries.reentrant += " \
          "[#{own_name.dump}]"
      end

      private

      def called
        return "an unknown function" unless method_name || function

        [method_name || "its function", function && "(#{function})"].compact.join(" ")
      end

      def own_name = File.basename(library, ".*")
    end

    # Maximum number of call sites that {recent} returns.
    RECENT = 100
    private_constant :RECENT

    # The protection :callback_report.
    #
    # @api private
    module Switch
      @recent = []

      class << self
        # Switches the reports on. If this platform does not support them, {status} contains the reason.
        # @return [void]
        def enable
          @reason = unavailable
          Native.report_callbacks(true) unless @reason
          @enabled = true
        end

        # Switches the reports off, and clears the list of reported call sites.
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

        # @return [Array<Wait>] the call sites that were found since the last call
        def take
          found = Native.take_callbacks.map { |fields| Wait.new(*fields) }
          @recent = (@recent + found).last(RECENT)
          found
        end

        private

        def unavailable
          return if Native.find_interpreter(-> { Native.note_interpreter }) { Native.note_interpreter }

          "Heddle can't read the native stack frames of a fiber on this platform"
        end
      end
      Protection.register(:callback_report, self)
    end

    class << self
      # @return [Array<Wait>] the newest {RECENT} reported call sites, oldest first
      def recent = Switch.recent

      # @return [Hash{Symbol => Object}] `waits`: the number of waits in callbacks; `by_library`: this number for each
      #   library, by file name; `reason`: why Heddle can't detect waits on this platform, absent if it can
      def status = Switch.status
    end
  end
end
