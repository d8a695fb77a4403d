# frozen_string_literal: true

module Heddle
  class Server
    # Protects a serving loop from exceptions that other threads raise in its thread. All requests share that thread, so
    # it is unknown which request the exception was meant for. An exception by `Thread#raise` is dropped, and logged
    # once for each line of code that raises. `Thread#kill` stops the process gracefully. A fiber that calls
    # `Thread.current.raise` or `Thread.exit` ends only itself.
    #
    # While the thread serves, singleton methods of the thread, such as `raise` and `kill`, implement these rules.
    # Heddle's own exceptions bypass the methods (ext/heddle/preempt/thread_raise.c).
    class ThreadGuard
      autoload :Aborts, "heddle/server/thread_guard/aborts"

      # Makes Thread.kill and Thread.exit call the methods that the guard defines on a thread. Ruby's own versions of
      # Thread.kill and Thread.exit don't call these methods. The first guard prepends this module to Thread's singleton
      # class.
      module Ending
        # @see Thread.kill
        def kill(thread) = thread.is_a?(Thread) ? thread.kill : super

        # @see Thread.exit
        def exit = Thread.current.kill
      end

      # The methods that end a thread.
      ENDING = %i[kill exit terminate].freeze
      # Maximum number of lines of code that are remembered, so that each is logged once. Exceptions from further lines
      # are dropped without a log line.
      MOST_PLACES = 100
      private_constant :Ending, :ENDING, :MOST_PLACES

      # @param log [#event]
      # @param pass [#call, nil] returns true if the thread serves one known request, so that the exception may be
      #   raised in it
      # @yield stops the server gracefully; called on any thread
      def initialize(log, pass: nil, &stop)
        @log = log
        @pass = pass
        @stop = stop
        @places = {}
      end

      # Guards the calling thread while the block runs; the main thread also from `abort_on_exception` ({Aborts}). If
      # Ruby must not be patched, only runs the block.
      # @return what the block returns
      def during(&)
        return yield if Scheduler::Patches.forbidden

        thread = Thread.current
        Thread.singleton_class.prepend(Ending)
        guard_raise(thread)
        guard_kill(thread)
        thread.equal?(Thread.main) ? Aborts.new(@log).during(&) : yield
      ensure
        [:raise, *ENDING].each { |name| thread.singleton_class.remove_method(name) } if thread
      end

      # @api private
      # @return [Boolean] whether an exception that was raised at this place may reach the thread
      def let_through?(place)
        # In a fiber, Timeout uses a timer of the loop. Only for code in `Fiber.blocking`, which never lets other fibers
        # run, it uses the thread of Ruby's library timeout. The exception of that thread therefore reaches the right
        # fiber.
        place&.path == ThreadGuard.timeout_path || @pass&.call
      end

      # @api private
      def report_raise(error, message, place)
        text = error.is_a?(Exception) ? "#{error.class} (#{error.message})" : error.inspect
        text = "#{text} (#{message})" if message.is_a?(String)
        report_once(:exception_dropped, place, error: text)
      end

      # @api private
      def stop_for(place)
        report_once(:thread_kill_refused, place)
        @stop.call
      end

      # @return [String, nil] the file of Ruby's library timeout; nil if the library is not loaded, or older than 0.2
      def self.timeout_path
        return unless defined?(::Timeout.timeout) && Gem::Version.new(::Timeout::VERSION) >= Gem::Version.new("0.2")

        ::Timeout.method(:timeout).source_location.first
      end

      private

      def guard_raise(thread)
        guard = self
        thread.define_singleton_method(:raise) do |*arguments, **options|
          place = Kernel.caller_locations(1, 1)&.first
          return super(*arguments, **options) if equal?(Thread.current) || guard.let_through?(place)

          guard.report_raise(*arguments.first(2).fill(nil, arguments.size, 2 - arguments.size), place) if alive?
          nil
        end
      end

      def guard_kill(thread)
        guard = self
        ENDING.each do |name|
          thread.define_singleton_method(name) do
            return Fiber.current_scheduler ? Fiber.current.kill : super() if equal?(Thread.current)

            guard.stop_for(Kernel.caller_locations(1, 1)&.first)
            self
          end
        end
      end

      def report_once(event, place, **fields)
        key = place.to_s
        return if @places.key?(key) || @places.size >= MOST_PLACES

        @places[key] = true
        @log.event(event, place: place || "a thread", **fields)
      end
    end
  end
end
