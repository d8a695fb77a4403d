# frozen_string_literal: true

module Heddle
  class Server
    module Modes
      # Mode fiber. Each thread runs a loop, and each loop runs many requests at once, each in its own fiber.
      class Fibers
        # @return [Array<Serving>] one for each loop; the first one runs in the thread that calls {#run}
        attr_reader :servings

        # @param configuration [Configuration]
        # @param log [Log]
        def initialize(configuration, log)
          @configuration = configuration
          @log = log
          @servings = Array.new(configuration.threads) { Serving.new(configuration, log, loops: configuration.threads) }
        end

        # Serves until {#stop} is called.
        #
        # @param app [#call]
        # @param listeners [Listeners]
        # @param around [#call] called in the first loop; must call the block that it gets, which serves the requests
        # @yield once, when all loops accept requests
        # @return [Boolean] whether every request was answered
        def run(app, listeners, around, &ready)
          looping do
            around.call do
              others = start_others(app, listeners)
              [@servings.first.serve(app, listeners, &ready), *others.map(&:value)].all?
            ensure
              stop(now: true)
              others&.each(&:join)
            end
          end
        end

        # May be called from any thread.
        # @param now [Boolean] whether to cancel running requests at once
        # @return [void]
        def stop(now: false) = @servings.each { |serving| serving.stop(now:) }

        private

        def looping(&) = Heddle.run(selector: @configuration.selector, name: "server", &)

        def guarding(&) = ThreadGuard.new(@log) { stop }.during(&)

        # @return [Array<Thread>] the threads of the other loops, which accept requests when this method returns
        def start_others(app, listeners)
          accepting = Thread::Queue.new
          others = @servings.each_with_index.drop(1).map do |serving, index|
            Thread.new do
              Thread.current.name = "loop #{index + 1}"
              Thread.current.report_on_exception = false # Thread#value raises the exception
              looping { guarding { serving.serve(app, listeners) { accepting << true } } }
            rescue Exception
              stop(now: true)
              raise
            ensure
              accepting << false
            end
          end
          others.each { accepting.pop }
        end
      end
    end
  end
end
