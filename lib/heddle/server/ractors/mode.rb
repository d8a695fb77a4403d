# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # Runs several Ractors, each with a loop that serves requests. The main Ractor has a loop, too, but it serves no
      # requests. It handles signals, the log and the control socket, and replaces a Ractor that dies.
      class Mode
        # @param app [#call] the application; this method freezes it and all objects that it refers to
        # @return [#call] the application, shareable by Ractors
        # @raise [BootError] when Ractors can't share the application
        def self.share(app) = Sharing.new(app).share

        # @return [Array<Serving>] one for each Ractor
        attr_reader :servings

        # @param configuration [Configuration]
        # @param log [Log]
        def initialize(configuration, log)
          @configuration = configuration
          @listeners = nil
          @servings = Array.new(configuration.threads) { |index| Serving.new(configuration, log, index) }
        end

        # @param app [#call] see {.share}
        # @see Modes::Fibers#run
        # @raise [BootError] when the application can't be shared by Ractors
        def run(app, listeners, around, &ready)
          app = Mode.share(app)
          Ractors.prepare
          @listeners = listeners
          looping do
            around.call { serve(app, listeners, &ready) }
          ensure
            stop(now: true)
          end
        end

        # @see Modes::Fibers#stop
        def stop(now: false)
          @servings.each { |serving| serving.stop(now:) }
          @listeners&.close # each Ractor has its own descriptors of the sockets
        end

        private

        def looping(&) = Heddle.run(selector: @configuration.selector, name: "server", &)

        def serve(app, listeners, &ready)
          waiting = @servings.size
          accepting = -> { ready&.call if (waiting -= 1).zero? }
          tasks = @servings.map { |one| Heddle.async(name: one.name) { one.serve(app, listeners, &accepting) } }
          tasks.map(&:value).all?
        end
      end
    end
  end
end
