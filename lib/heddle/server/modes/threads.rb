# frozen_string_literal: true

module Heddle
  class Server
    module Modes
      # Mode thread. One loop owns all sockets. The application runs in threads, each of which runs one request at a
      # time.
      class Threads
        # @return [Array<Serving>] the only loop
        attr_reader :servings

        # @param configuration [Configuration]
        # @param log [Log]
        def initialize(configuration, log)
          @configuration = configuration
          @log = log
          @runners = RunnerThreads.new(size)
          @servings = [Serving.new(configuration, log, runners: @runners)]
        end

        # @see Fibers#run
        def run(app, listeners, around, &ready)
          looping do
            @runners.start
            around.call { @servings.first.serve(app, listeners, &ready) }
          ensure
            @runners.stop
          end
        end

        # @see Fibers#stop
        def stop(now: false) = @servings.first.stop(now:)

        private

        def size
          limit = @configuration.max_requests
          limit == 0 ? @configuration.threads : [@configuration.threads, limit].min
        end

        def looping(&) = Heddle.run(selector: @configuration.selector, name: "server", &)
      end
    end
  end
end
