# frozen_string_literal: true

module Heddle
  class Server
    # Makes major garbage collections between requests, and never in the middle of one, if `out_of_band_gc` is set. Ruby
    # makes minor collections only, and notes when it would have made a major one. Then this process stops accepting,
    # waits until no request runs, and collects. Where there are other workers, they accept meanwhile, and only one
    # worker at a time collects.
    #
    # Objects that have grown old are freed by major collections only. So the memory of a process that never has its
    # turn is bounded: past {GROWTH} Ruby collects by itself again.
    class OutOfBandGC
      include MonotonicClock

      # Bytes of growth since the last major collection beyond which Ruby makes the next one by itself: about the size
      # of a worker with Rails.
      GROWTH = 256 << 20
      # Seconds between two checks.
      POLL_INTERVAL = 0.1
      # Seconds that running requests may take to end. Then the collection is made all the same.
      QUIET = 0.5
      # Seconds between two checks whether a request runs.
      QUIET_POLL_INTERVAL = 0.002
      private_constant :POLL_INTERVAL, :QUIET, :QUIET_POLL_INTERVAL

      # @return [Boolean] whether this Ruby lets the application decide (since Ruby 3.4), and this system knows how much
      #   memory a process uses
      def self.available? = GC.respond_to?(:config) && GC.config.key?(:rgengc_allow_full_mark) && !Memory.used.nil?

      # @param configuration [Configuration]
      # @return [String, nil] what to say where Ruby makes no full collections and this class makes none either
      def self.warning(configuration)
        return if configuration.out_of_band_gc || !available? || GC.config[:rgengc_allow_full_mark]

        "full garbage collections are off (GC.config), so memory grows until something starts them: remove that, or " \
          "set out_of_band_gc, which makes them between requests"
      end

      # @return [Integer] how many collections it has made
      attr_reader :collections

      # @param server [Server]
      # @param log [#notice]
      # @param ask [#call, nil] asks for this process's turn, upon which {#collect} must be called; nil: it is always
      #   its turn
      def initialize(server, log, ask: nil)
        @server = server
        @log = log
        @ask = ask || -> { collect }
        @collections = 0
        @asked = false
      end

      # In the loop.
      # @return [Task] to be cancelled when the server stops
      def start
        hold_back
        Heddle.async(name: "out-of-band GC", background: true) do
          loop do
            sleep(POLL_INTERVAL)
            look
          end
        ensure
          GC.config(rgengc_allow_full_mark: true)
        end
      end

      # It is this process's turn. In the loop.
      # @return [void]
      def collect
        @asked = false
        return unless GC.latest_gc_info(:need_major_by)

        @server.accepting = false
        wait_for_quiet
        GC.start
        @collections += 1
        hold_back
      ensure
        @server.accepting = true
      end

      private

      def look
        return hold_back if major_collections != @known
        return unless GC.latest_gc_info(:need_major_by)
        return allow_automatic if Memory.used - @memory > GROWTH
        return if @asked

        @asked = true
        @ask.call
      end

      # From now on Ruby makes no major collections by itself.
      def hold_back
        GC.config(rgengc_allow_full_mark: false)
        @known = major_collections
        @memory = Memory.used
      end

      # Ruby makes the next major collection by itself, whenever that is.
      def allow_automatic
        return if GC.config[:rgengc_allow_full_mark]

        GC.config(rgengc_allow_full_mark: true)
        @log.notice("memory has grown by more than #{GROWTH / 1_048_576} MiB since the last major garbage " \
                    "collection: Ruby makes the next one by itself")
      end

      def wait_for_quiet
        deadline = now + QUIET
        sleep(QUIET_POLL_INTERVAL) while @server.statistics&.fetch(:running)&.positive? && now < deadline
      end

      def major_collections = GC.stat(:major_gc_count)
    end
  end
end
