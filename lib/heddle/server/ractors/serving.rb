# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # Manages a serving Ractor from the main Ractor: starts it, stops it, receives its counters, and replaces it when
      # it dies. The counters are at most half a second old.
      class Serving
        # Seconds until a Ractor that has died is replaced.
        RESTART_DELAY = 1.0
        # The counters in {Server#statistics} that must not start again at 0 when a Ractor is replaced.
        COUNTERS = %i[accepted rejected_full rejected_late
                      pubsub_delivered pubsub_dropped pubsub_resets pubsub_closed].freeze
        private_constant :RESTART_DELAY, :COUNTERS

        # @return [Symbol, nil] the name of the Ractor's selector; nil before it serves
        attr_reader :selector

        # @param configuration [Configuration]
        # @param log [Log]
        # @param index [Integer] the Ractor's number, counted from 0
        def initialize(configuration, log, index)
          @configuration = configuration
          @log = log
          @index = index
          @stopping = @leaves = false
          @answered = true
          @counters = COUNTERS.to_h { |name| [name, 0] }
          @channel = @engine_statistics = @past = @statistics = @selector = @failure = nil
        end

        # @return [EngineStatistics, nil] the counters of this Ractor and of the Ractors that it has replaced
        def engine = @past && @engine_statistics ? @past + @engine_statistics : @engine_statistics || @past

        # @return [Hash, nil] see {Server#statistics}
        def statistics = @statistics&.merge(@counters) { |_, one, other| one + other }

        # @return [String]
        def name = "ractor #{@index + 1}"

        # Runs the Ractor until {#stop} is called. Must be called in the main Ractor's loop.
        # @param app [#call] shareable
        # @param listeners [Listeners]
        # @yield once, when the Ractor accepts requests
        # @return [Boolean] whether every request was answered
        # @raise [BootError] when the first Ractor can't start
        def serve(app, listeners, &ready)
          places = listeners.map { |one| [one.io, one.url, one.port, one.proxied] }
          serving = false
          until @stopping
            serving |= run_one(app, places) { ready&.call unless serving }
            break if @stopping
            raise BootError, "mode ractor: a Ractor failed to start: #{@failure}" unless serving

            @log.event(:ractor_died, ractor: name, reason: @failure)
            sleep(RESTART_DELAY)
          end
          @answered
        end

        # May be called from any thread.
        # @param now [Boolean] whether to cancel running requests at once
        # @return [void]
        def stop(now: false)
          @stopping = now || @stopping == :now ? :now : :drain
          @channel&.write_nonblock("#{word_to_stop(now)}\n", exception: false)
        rescue SystemCallError, IOError
          nil # the Ractor has ended
        end

        # Does nothing: mode ractor has no scoreboard and no handoff.
        def join_cluster(*, **) = nil

        # Stores only whether other workers keep serving, because mode ractor has no handoff.
        # @param socket [BasicSocket, false, nil] see {Server#stop}
        # @return [void]
        def handoff_sender=(socket)
          @leaves = !socket.nil?
        end

        def accept_handoff(_socket) = false

        def running_requests = []

        def task_tree = "#{name}\n"

        private

        def word_to_stop(now)
          return "now" if now

          @leaves ? "leave" : "stop"
        end

        # @return [Boolean] whether the Ractor has accepted requests
        def run_one(app, places, &)
          channel, theirs = UNIXSocket.pair
          lines, output = IO.pipe
          log = Heddle.async(name: "#{name}: log") { copy(lines) }
          ractor = start(app, places, theirs, output)
          @channel = channel
          stop(now: @stopping == :now) if @stopping
          accepted = read_reports(channel, &)
          log.wait
          finish(ractor)
          accepted
        ensure
          keep_counters
          [channel, lines].each { |io| io&.close }
        end

        # Keeps the counters of a Ractor that has ended, so that the counters of its successor are added to them.
        def keep_counters
          @past = engine
          @counters = statistics.slice(*COUNTERS) if @statistics
          @channel = @engine_statistics = @statistics = nil
        end

        # Starts the Ractor. It owns the descriptors from then on, and closes them when it ends.
        def start(app, places, channel, output)
          [channel, output].each { |io| io.autoclose = false }
          places = places.map do |io, *rest|
            copy = io.dup
            copy.autoclose = false
            [copy.fileno, io.is_a?(UNIXServer), *rest]
          end
          Ractor.new(app, @configuration.shareable_copy, channel.fileno, output.fileno, Ractor.make_shareable(places),
                     name:) do |*arguments|
            Worker.new(*arguments).run
          end
        end

        def copy(lines)
          while (line = lines.gets)
            @log.line(line)
          end
        end

        def read_reports(channel)
          accepted = false
          @failure = "it ended without a report"
          while (line = channel.gets)
            # Only this program writes to the other end, so the data can be trusted.
            what, value = Marshal.load(line.unpack1("m")) # rubocop:disable Security/MarshalLoad
            case what
            when :ready
              @selector = value
              accepted = true
              yield
            when :counted then count(*value)
            when :ended then @answered &&= value
            when :failed then @failure = value
            end
          end
          accepted
        rescue Errno::ECONNRESET
          accepted
        end

        def count(statistics, engine_statistics)
          @log.count_gone(engine_statistics.gone - (@engine_statistics&.gone || 0))
          @statistics = statistics
          @engine_statistics = engine_statistics
        end

        def finish(ractor)
          ractor.respond_to?(:join) ? ractor.join : ractor.take
        rescue Ractor::Error
          nil # the Ractor has already reported why
        end
      end
    end
  end
end
