# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      # The server's current facts. A fact that this machine or this server does
      # not tell is nil.
      class Facts
        def initialize
          @began = MonotonicClock.now
        end

        # @return [Hash{Symbol => Object}] times in seconds, memory in bytes
        def to_h
          scheduler = Fiber.scheduler
          {
            heddle: VERSION, ruby: RUBY_VERSION, platform: RUBY_PLATFORM, jit: jit,
            selector: selector_of(scheduler), fibers: fibers_of(scheduler), threads: Thread.list.size,
            pid: Process.pid, memory: memory, uptime: uptime
          }
        end

        private

        def selector_of(scheduler)
          scheduler.selector.to_s if scheduler.respond_to?(:selector)
        end

        def fibers_of(scheduler)
          scheduler.fiber_count if scheduler.respond_to?(:fiber_count)
        end

        def jit
          "YJIT" if defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
        end

        def memory
          File.read("/proc/self/statm").split[1].to_i * 4096
        rescue SystemCallError
          nil
        end

        def uptime
          (MonotonicClock.now - @began).round(1)
        end
      end
    end
  end
end
