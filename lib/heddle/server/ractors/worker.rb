# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # Serves requests in a Ractor: runs a loop with its own sockets, and reports its counters to the main Ractor.
      class Worker
        # Seconds between two reports of the counters.
        REPORT_INTERVAL = 0.5
        private_constant :REPORT_INTERVAL

        # @param app [#call]
        # @param configuration [Configuration] {Configuration#shareable_copy}
        # @param channel [Integer] the descriptor of a socket to the main Ractor
        # @param output [Integer] the descriptor of a pipe, which gets the lines of the log
        # @param places [Array] for each listener: its descriptor, whether it is a unix socket, URL, port, `proxied`
        def initialize(app, configuration, channel, output, places)
          @app = app
          @configuration = configuration
          @channel = UNIXSocket.for_fd(channel)
          @output = IO.for_fd(output, "w")
          @output.sync = true
          @places = places
        end

        # @return [void]
        def run
          @log = Log.new(output: @output, errors: $stderr, **Log.settings(@configuration))
          @serving = Server::Serving.new(@configuration, @log, loops: @configuration.threads)
          Events.reporting_to(@log) do
            Heddle.run(selector: @configuration.selector, name: "ractor") { notify_main(:ended, guarded_serve) }
          end
        rescue Exception => e
          notify_main(:failed, "#{e.class}: #{e.message} (#{e.backtrace&.first})")
        ensure
          @listeners&.close
          [@channel, @output].each(&:close)
        end

        private

        def guarded_serve = ThreadGuard.new(@log) { @serving.stop }.during { serve }

        def serve
          @log.start
          tasks = [Heddle.async(name: "main", background: true) { read_commands },
                   Heddle.async(name: "statistics", background: true) { report_periodically }]
          @serving.serve(@app, @listeners = listeners) do
            report_statistics
            notify_main(:ready, @serving.selector)
          end
        ensure
          tasks&.each(&:cancel)
          report_statistics
          @log.stop
        end

        def listeners
          Listeners.new(@places.map do |descriptor, unix, url, port, proxied|
            Listener.new((unix ? UNIXServer : TCPServer).for_fd(descriptor), url, port, proxied:)
          end)
        end

        def read_commands
          while (word = @channel.gets)
            @serving.handoff_sender = (false if word == "leave\n")
            @serving.stop(now: word == "now\n")
          end
          @serving.stop(now: true)
        end

        def report_periodically
          loop do
            sleep(REPORT_INTERVAL)
            report_statistics
          end
        end

        # When the loop no longer serves, reports its last counters once more. `clients_gone` is 0 then, because the log
        # has added those clients to its own count.
        def report_statistics
          @engine = @serving.engine
          @statistics = @serving.statistics || @statistics&.merge(clients_gone: 0)
          notify_main(:counted, [@statistics, EngineStatistics.of(@engine, @log.gone)]) if @engine && @statistics
        end

        def notify_main(what, value)
          @channel.write("#{[Marshal.dump([what, value])].pack("m0")}\n")
        rescue SystemCallError, IOError
          nil # the main Ractor has ended
        end
      end
    end
  end
end
