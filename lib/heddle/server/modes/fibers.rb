# frozen_string_literal: true

module Heddle
  class Server
    module Modes
      # A loop in each thread, and in each loop many requests at once, each in a fiber of its own.
      class Fibers
        # @return [Array<Serving>] the first is the calling thread's
        attr_reader :servings

        # @param configuration [Configuration]
        # @param log [Log]
        def initialize(configuration, log)
          @configuration = configuration
          @log = log
          @servings = Array.new(configuration.threads) { Serving.new(configuration, log, loops: configuration.threads) }
        end

        # Serves until {#stop}.
        #
        # @param app [#call]
        # @param listeners [Listeners]
        # @param around [#call] called in the first loop with a block, which serves
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

        # @return [Array<Thread>] the threads of the other loops, which accept requests
        def start_others(app, listeners)
          accepting = Thread::Queue.new
          others = @servings.each_with_index.drop(1).map do |serving, index|
            Thread.new do
              Thread.current.name = "loop #{index + 1}"
              Thread.current.report_on_exception = false # Thread#value raises it
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
