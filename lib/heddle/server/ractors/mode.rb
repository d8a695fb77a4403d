# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # A loop in each of several Ractors. The main one has a loop, too, which serves no requests: it has the signals,
      # the log and the control socket, and replaces a Ractor that dies.
      class Mode
        # @param app [#call] is frozen, with all that it refers to
        # @param log [Log, nil] gets an event for what may break a request
        # @return [#call]
        # @raise [BootError] when Ractors can't share the application
        def self.share(app, log) = Sharing.new(app).share(log)

        # @return [Array<Serving>] one a Ractor
        attr_reader :servings

        # @param configuration [Configuration]
        # @param log [Log]
        def initialize(configuration, log)
          @configuration = configuration
          @log = log
          @listeners = nil
          @servings = Array.new(configuration.threads) { |index| Serving.new(configuration, log, index) }
        end

        # @param app [#call] is frozen, with all that it refers to
        # @see Modes::Fibers#run
        # @raise [BootError] when the application can't be shared by Ractors
        def run(app, listeners, around, &ready)
          # The mold of several workers has said what there is to say of it.
          app = Mode.share(app, @servings.any?(&:placed?) ? nil : @log)
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
          @listeners&.close # each Ractor has a descriptor of its own
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
