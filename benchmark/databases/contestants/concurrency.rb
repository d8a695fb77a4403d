# frozen_string_literal: true

require "timeout"
require_relative "../../http/contestant"
require_relative "../../http/contestants/falcon"
require_relative "../../http/contestants/heddle"
require_relative "../../http/contestants/puma"

module Bench
  module Databases
    # How the queries of a row run at the same time.
    module Concurrency
      # One after the other: what concurrency is compared with.
      class Blocking
        def role = :baseline

        def fibers? = false

        def prepare = nil

        def version = "Ruby #{RUBY_VERSION}"

        def run = yield

        # @param settings [Hash] what servers take
        # @param threads [Integer] how many, where it has threads
        # @return [HTTP::Contestant] the server that runs requests so
        def server(threads:, **settings) = HTTP::Contestants::Puma.new(threads: [threads, most_threads].min, **settings)

        # @return [Hash{String => String}] what configures that server, beside its flags
        def server_environment = {}

        # @return [Array<Exception>]
        def each(items, _workers)
          items.filter_map do |item|
            yield item
            nil
          rescue StandardError => e
            e
          end
        end

        def time_out(seconds, &) = Timeout.timeout(seconds, &)

        private

        def most_threads = 1
      end

      # As many threads as there are connections, as in a server with a pool of threads.
      class Threads < Blocking
        def role = :peer

        def each(items, workers, &)
          queue = Thread::Queue.new(items).close
          one_after_the_other = Blocking.instance_method(:each)
          Array.new(workers) { Thread.new { one_after_the_other.bind_call(self, drain(queue), workers, &) } }
               .flat_map(&:value)
        end

        private

        def most_threads = 1_000

        def drain(queue)
          Enumerator.new do |items|
            while (item = queue.pop)
              items << item
            end
          end
        end
      end

      # A fiber for each item.
      class Fibers < Blocking
        def role = :peer

        def fibers? = true

        def each(items, _workers)
          done = Thread::Queue.new
          items.each do |item|
            spawn do
              yield item
              done << nil
            rescue StandardError => e
              done << e
            end
          end
          items.filter_map { done.pop }
        end
      end

      # async on io-event.
      class Async < Fibers
        def prepare = require("async")

        def version = "async #{::Async::VERSION}, io-event #{IO::Event::VERSION}"

        def server(**settings) = HTTP::Contestants::Falcon.new(**settings.except(:threads))

        def run(&) = Sync(&)

        private

        def spawn(&) = ::Async::Task.current.async(finished: false, &)
      end

      # Heddle's loop.
      class Heddle < Fibers
        def role = :heddle

        def prepare = require("heddle")

        def version = "Heddle #{::Heddle::VERSION}"

        def server(**settings) = HTTP::Contestants::Heddle.new(**settings.except(:threads))

        def server_environment = { "HEDDLE_CANCEL_ON_DISCONNECT" => "safe" }

        def run(&) = ::Heddle.run(&)

        def time_out(seconds, &) = ::Heddle.timeout(seconds, &)

        private

        def spawn(&) = ::Heddle.async(&)
      end
    end
  end
end
